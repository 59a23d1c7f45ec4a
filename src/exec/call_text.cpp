// The fingerprint of a call, packed and as words.
#include "src/exec/bound_plan.hpp"

namespace polyrail {
namespace {

// Of uneven parts: the sum, a check of the single counts, and kUnevenCount.
constexpr int kCheckShift = 48;
constexpr std::uint64_t kCountBits = (std::uint64_t{1} << kCheckShift) - 1;

// Of even ones: the count, and one more than the wire type, if there is one.
constexpr int kWireShift = 56;
constexpr std::uint64_t kEvenCountBits = (std::uint64_t{1} << kWireShift) - 1;

}  // namespace

// From the lowest bit: in place 1, root 16, operator 5, type 6, collective 4.
std::uint32_t call_kind(const CollectiveSpec& spec) {
  const bool is_in_place = spec.is_in_place && spec.collective == Collective::kAllReduce;
  const auto op = reduces(spec.collective) ? static_cast<std::uint32_t>(spec.op) : 0u;
  return static_cast<std::uint32_t>(spec.collective) << 28 |
         (static_cast<std::uint32_t>(spec.type) & 0x3fu) << 22 | (op & 0x1fu) << 17 |
         (static_cast<std::uint32_t>(spec.root) & 0xffffu) << 1 | (is_in_place ? 1u : 0u);
}

std::uint64_t call_count(const CollectiveSpec& spec) {
  if (spec.counts.empty()) {
    const auto wire = spec.wire_type ? static_cast<std::uint64_t>(*spec.wire_type) + 1 : 0;
    return spec.count | wire << kWireShift;
  }
  if (is_exchange(spec.collective)) return kUnevenCount;
  std::uint64_t sum = 0;
  std::uint64_t check = 0;
  for (const std::uint64_t count : spec.counts) {
    sum += count;
    check = (check ^ count) * 0x9e3779b97f4a7c15ull;
    check ^= check >> 29;
  }
  return kUnevenCount | (check & 0x7fff) << kCheckShift | (sum & kCountBits);
}

std::string call_text(std::uint32_t kind, std::uint64_t count) {
  const auto collective = static_cast<Collective>(kind >> 28);
  std::string text(name(collective));
  if (collective == Collective::kBarrier) return text;
  text += " of ";
  if ((count & kUnevenCount) == 0) {
    text += std::to_string(count & kEvenCountBits) + ' ';
  } else if (collective == Collective::kAllGather || collective == Collective::kReduceScatter) {
    text += std::to_string(count & kCountBits) + " in uneven parts (check " +
            std::to_string(count >> kCheckShift & 0x7fff) + "), ";
  } else {
    text += "uneven parts, ";
  }
  text += std::string(name(static_cast<DataType>(kind >> 22 & 0x3f)));
  if (reduces(collective)) {
    text += ", " + std::string(name(static_cast<ReduceOp>(kind >> 17 & 0x1f)));
  }
  if (has_root(collective)) text += ", root " + std::to_string(kind >> 1 & 0xffff);
  if ((count & kUnevenCount) == 0 && count >> kWireShift != 0) {
    const auto wire = static_cast<DataType>((count >> kWireShift) - 1);
    text += " as " + std::string(name(wire)) + " on the wire";
  }
  if ((kind & 1) != 0) text += ", in place";
  return text;
}

}  // namespace polyrail
