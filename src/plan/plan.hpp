// Plan: who sends which bytes over which rail in which order, as plain data.
//
// A plan holds one schedule per rank and is the same value on every rank. Nothing here does I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <polyrail/status.hpp>
#include <polyrail/types.hpp>

namespace polyrail {

// What the plan computes. layout.hpp says what each rank's input and output hold.
struct CollectiveSpec {
  Collective collective = Collective::kAllReduce;
  // Elements of the vector; of each rank's part in reduce_scatter, all_gather, gather and scatter;
  // of what each rank sends to each in all_to_all.
  std::uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool is_in_place = false;
  int rank_count = 1;
  int root = 0;  // reduce, broadcast, gather, scatter
  // Operands are combined from left to right in rank order, whatever the topology.
  bool is_ordered = false;
  // all_reduce of fp32: the narrower type of what travels. Each input is rounded to it once, and so
  // is the result; operands are combined in fp32.
  std::optional<DataType> wire_type;
  // Uneven parts, instead of `count`: elements by rank; all_to_all: [from * rank_count + to].
  std::vector<std::uint64_t> counts;

  // Of the vector that the collective works on: what a rank has of it in all_reduce, reduce,
  // broadcast and scan, all parts together in the others, all that is sent in all_to_all.
  std::uint64_t bytes() const;
  friend bool operator==(const CollectiveSpec&, const CollectiveSpec&) = default;
};

// Whether elements are combined.
constexpr bool reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kReduceScatter || collective == Collective::kScan ||
         collective == Collective::kExclusiveScan;
}
constexpr bool has_root(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kBroadcast ||
         collective == Collective::kGather || collective == Collective::kScatter;
}
// Whether the vector consists of parts that belong to ranks.
constexpr bool has_parts(Collective collective) {
  return collective == Collective::kReduceScatter || collective == Collective::kAllGather ||
         collective == Collective::kAllToAll || collective == Collective::kGather ||
         collective == Collective::kScatter;
}
// Whether bytes only move between pairs of ranks.
constexpr bool is_exchange(Collective collective) {
  return collective == Collective::kAllToAll || collective == Collective::kGather ||
         collective == Collective::kScatter;
}
constexpr bool is_scan(Collective collective) {
  return collective == Collective::kScan || collective == Collective::kExclusiveScan;
}

enum class Space : std::uint8_t { kInput, kOutput, kScratch, kWire };

// A byte range of a rank's input, output or scratch, or of its scratch for elements of the wire
// type; whole elements.
struct Slice {
  Space space = Space::kInput;
  std::uint64_t offset_bytes = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
};

// Size of an element in a space.
constexpr std::size_t element_bytes(const CollectiveSpec& spec, Space space) {
  return size_bytes(space == Space::kWire ? spec.wire_type.value_or(spec.type) : spec.type);
}

enum class StepOp : std::uint8_t {
  kPut,     // source (here) -> target (at peer), over rail; raises `signal` at the peer once
  kWait,    // done when `signal`, raised by peer's put, is there; `target` is where it landed
  kReduce,  // target = op(source, operand), element by element; both local
  kCopy,    // target = source; both local; between spaces of unlike types a cast
};

// One step of a schedule. Steps start when all steps listed in `after` are done; there is no other
// order between them. A put is done when the peer has acknowledged it: only then may its source
// change. The operands of a reduce are in the order written, so a result is the same each time.
struct Step {
  StepOp op = StepOp::kWait;
  int peer = -1;             // put, wait
  int rail = -1;             // put, wait: the plane of the rail that carries it
  std::uint32_t signal = 0;  // put, wait: unique among the waits of the receiving schedule
  Slice source;              // put, reduce, copy
  Slice operand;             // reduce
  Slice target;              // put (at the peer), wait, reduce, copy
  bool is_final = false;     // reduce, copy: apply the finishing of kAvg (divide by rank_count)
  std::vector<std::uint32_t> after;  // indices of earlier steps of this schedule, ascending
  friend bool operator==(const Step&, const Step&) = default;
};

struct Schedule {
  std::vector<Step> steps;
  std::uint64_t scratch_bytes = 0;
  std::uint64_t wire_bytes = 0;  // of scratch for elements of the wire type
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

struct Plan {
  CollectiveSpec spec;
  std::string algorithm;  // "ring", "direct", "two_level(ring)", ...
  int plane_count = 0;
  double predicted_us = 0;          // from simulate(); 0 if not simulated
  double limit_us = 0;              // lower bound for any plan on the topology; 0: not known
  std::vector<Schedule> schedules;  // by rank
  friend bool operator==(const Plan&, const Plan&) = default;
};

// The words used in text: "scratch", "put".
std::string_view name(Space space);
std::string_view name(StepOp op);

// A schedule's signals are below this.
inline constexpr std::uint32_t kMostSignals = 1u << 22;

// Whether the arguments can be right: values known, as many counts as there should be, no overflow.
Status check_spec(const CollectiveSpec& spec);

// Whether every schedule can be run as it stands: slices are whole elements inside their buffers,
// nothing writes the input, `after` lists earlier steps in ascending order, fields that an op does
// not use are left at their defaults, and each put is met by exactly one wait of its peer with the
// same signal, rail and target. Signals are small numbers, but not all need to be used.
// What the steps compute and in which order is the business of check.hpp.
Status check_shape(const Plan& plan);

}  // namespace polyrail
