#include "src/exec/arithmetic.hpp"

#include "kernels/kernels.hpp"
#include "src/base/assert.hpp"

namespace polyrail {

Arithmetic::Arithmetic(const CollectiveSpec& spec, const UserOp* user)
    : type_(spec.type),
      wire_(spec.wire_type.value_or(spec.type)),
      op_(spec.op),
      is_stepwise_(spec.is_ordered),
      user_(user) {
  PR_ASSERT((op_ == ReduceOp::kUser) == (user != nullptr) || !reduces(spec.collective));
  if (op_ == ReduceOp::kAvg) divisor_ = spec.rank_count;
  // The factors have been applied to the inputs.
  if (op_ == ReduceOp::kPreMulSum || op_ == ReduceOp::kWeightedAvg) op_ = ReduceOp::kSum;
}

void Arithmetic::reduce(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t bytes,
                        bool is_final) const {
  const std::size_t count = bytes / size_bytes(type_);
  if (user_ != nullptr) {
    user_->combine(a, b, out, count, type_, user_->context);
    return;
  }
  polyrail::reduce(type_, op_, a, b, out, count, {is_final ? divisor_ : 1});
}

void Arithmetic::reduce_wire(const std::byte* a, const std::byte* b, std::byte* out,
                             std::uint64_t bytes, bool is_final) const {
  reduce_mixed(op_, wire_, a, b, out, bytes / size_bytes(type_), {is_final ? divisor_ : 1});
}

void Arithmetic::cast(const std::byte* source, std::byte* target, std::uint64_t bytes,
                      bool from_wire) const {
  polyrail::cast(from_wire ? wire_ : type_, from_wire ? type_ : wire_, source, target,
                 bytes / size_bytes(type_));
}

void Arithmetic::reduce_many(std::span<const void* const> operands, std::byte* out,
                             std::uint64_t bytes, bool is_final) const {
  PR_ASSERT(!operands.empty());
  const std::size_t count = bytes / size_bytes(type_);
  if (operands.size() == 1 || (user_ == nullptr && !is_stepwise_)) {
    const bool divides = is_final && user_ == nullptr;
    const ReduceOp op = user_ == nullptr ? op_ : ReduceOp::kSum;  // a copy
    if (operands.size() == 1 && !(divides && divisor_ != 1)) {
      if (operands[0] != out) copy(operands[0], out, bytes);
      return;
    }
    polyrail::reduce_many(type_, op, operands, out, count, {divides ? divisor_ : 1});
    return;
  }
  const auto* sum = static_cast<const std::byte*>(operands[0]);
  for (std::size_t i = 1; i < operands.size(); ++i) {
    reduce(sum, static_cast<const std::byte*>(operands[i]), out, bytes,
           is_final && i + 1 == operands.size());
    sum = out;
  }
}

}  // namespace polyrail
