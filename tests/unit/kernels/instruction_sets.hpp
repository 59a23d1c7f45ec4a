// Runs a test on every instruction set that the kernels are built for and this machine has.
#pragma once

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "kernels/instruction_sets.hpp"

#include <hwy/targets.h>

namespace polyrail {

// Test parameter: the bit of one instruction set.
class OnEachInstructionSet : public testing::TestWithParam<std::int64_t> {
 protected:
  OnEachInstructionSet() { choose(GetParam()); }
  ~OnEachInstructionSet() override { choose(0); }

 private:
  // 0: the best again. The choice is made anew at the next call into the kernels.
  static void choose(std::int64_t set) {
    hwy::SetSupportedTargetsForTest(set);
    hwy::GetChosenTarget().DeInit();
  }
};

inline auto instruction_sets() {
  return testing::ValuesIn(hwy::SupportedAndGeneratedTargets());
}
inline std::string instruction_set_name(const testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

}  // namespace polyrail
