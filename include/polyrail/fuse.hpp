// Which small calls of a group become one operation. Decided by what all ranks know of a call:
// never by addresses.
#pragma once

#include <cstdint>

#include <polyrail/call.hpp>

namespace polyrail {

// Together at most so much: beyond it copying costs more than a latency.
inline constexpr std::uint64_t kMostFusedBytes = 256 * 1024;

// Whether a call may become part of a fused operation: an all_reduce element by element whose
// operator needs nothing besides the elements.
constexpr bool is_fusible(const Call& call) {
  return call.collective == Collective::kAllReduce && call.reduction.op <= ReduceOp::kAvg &&
         !call.wire_type && can_reduce(call.type, call.reduction.op) &&
         call.count <= kMostFusedBytes / size_bytes(call.type);
}
constexpr bool fits_together(const Call& a, const Call& b) {
  return is_fusible(a) && is_fusible(b) && a.type == b.type && a.reduction.op == b.reduction.op;
}

}  // namespace polyrail
