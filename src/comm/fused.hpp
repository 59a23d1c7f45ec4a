// FusedCalls: several small all_reduces with one buffer between them and the engine.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <polyrail/call.hpp>
#include <polyrail/status.hpp>

namespace polyrail {

class FusedCalls final {
 public:
  // Precondition: the arguments of each call were found right.
  explicit FusedCalls(std::span<const Call> calls);
  // Whether the calls may be one.
  static Status check(std::span<const Call> calls);

  // The one call, in place in the buffer.
  Call call();
  void copy_in();         // inputs to the buffer
  void copy_out() const;  // the buffer to the outputs

 private:
  std::vector<Call> calls_;
  std::vector<std::byte> buffer_;
};

}  // namespace polyrail
