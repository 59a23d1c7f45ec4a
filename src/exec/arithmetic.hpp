// Arithmetic: how the operands of one call are combined - a kernel or the caller's function.
#pragma once

#include <cstddef>
#include <span>

#include <polyrail/call.hpp>

#include "src/plan/plan.hpp"

namespace polyrail {

class Arithmetic final {
 public:
  Arithmetic() = default;
  // `user`: of kUser; borrowed for the whole life.
  Arithmetic(const CollectiveSpec& spec, const UserOp* user);

  // out[i] = a[i] op b[i], and, if `is_final`, the division of kAvg. out may equal a or b.
  void reduce(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t bytes,
              bool is_final) const;
  // The same with b in the wire type. `bytes`: of elements of the call's type.
  void reduce_wire(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t bytes,
                   bool is_final) const;
  // Between the call's type and the wire type; `bytes` as above.
  void cast(const std::byte* source, std::byte* target, std::uint64_t bytes, bool from_wire) const;
  // As reduce(), over several operands from left to right; at least one.
  void reduce_many(std::span<const void* const> operands, std::byte* out, std::uint64_t bytes,
                   bool is_final) const;

 private:
  DataType type_ = DataType::kFloat32;
  DataType wire_ = DataType::kFloat32;
  ReduceOp op_ = ReduceOp::kSum;
  std::int64_t divisor_ = 1;  // of a final result
  // Whether results are rounded after each operand, as they are when operands come one by one.
  bool is_stepwise_ = false;
  const UserOp* user_ = nullptr;
};

}  // namespace polyrail
