#include "src/comm/arguments.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "src/plan/layout.hpp"

namespace polyrail {
namespace {

// More than any machine can map is a count that went wrong.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 56;

class CallReader {
 public:
  CallReader(const Call& call, int rank, int rank_count, CollectiveSpec& spec)
      : call_(call), rank_(rank), rank_count_(rank_count), spec_(spec) {}

  Status run(bool is_ordered) {
    spec_.counts.clear();
    if (!is_valid(call_.collective)) {
      return {
          StatusCode::kInvalidArgument,
          "the collective " + std::to_string(static_cast<int>(call_.collective)) + " is unknown"};
    }
    if (!is_valid(call_.type)) {
      return bad("the data type " + std::to_string(static_cast<int>(call_.type)) + " is unknown");
    }
    if (Status status = check_reduction(); !status.is_ok()) return status;
    if (has_root(call_.collective) && (call_.root < 0 || call_.root >= rank_count_)) {
      return bad("root " + std::to_string(call_.root) + " is not one of " +
                 std::to_string(rank_count_) + " ranks");
    }
    spec_.collective = call_.collective;
    spec_.count = call_.collective == Collective::kBarrier ? 0 : call_.count;
    spec_.type = call_.type;
    spec_.op = reduces(call_.collective) ? call_.reduction.op : ReduceOp::kSum;
    spec_.is_in_place = false;
    spec_.rank_count = rank_count_;
    spec_.root = has_root(call_.collective) ? call_.root : 0;
    const bool has_order = spec_.op == ReduceOp::kUser && !call_.reduction.user->is_commutative;
    spec_.is_ordered = reduces(call_.collective) && (is_ordered || has_order);
    spec_.wire_type = call_.wire_type;
    if (Status status = check_wire_type(); !status.is_ok()) return status;
    if (Status status = read_counts(); !status.is_ok()) return status;
    return read_buffers();
  }

 private:
  Status bad(const std::string& cause) const {
    return {StatusCode::kInvalidArgument, std::string(name(call_.collective)) + " on rank " +
                                              std::to_string(rank_) + ": " + cause};
  }

  Status check_reduction() const {
    if (!reduces(call_.collective)) return ok();
    const ReduceOp op = call_.reduction.op;
    if (!is_valid(op)) {
      return bad("the operator " + std::to_string(static_cast<int>(op)) + " is unknown");
    }
    if (!can_reduce(call_.type, op)) {
      return bad("elements of " + std::string(name(call_.type)) + " have no " +
                 std::string(name(op)));
    }
    if (op == ReduceOp::kUser &&
        (call_.reduction.user == nullptr || call_.reduction.user->combine == nullptr)) {
      return bad("the user's operator has no function");
    }
    if (is_scan(call_.collective) && (op == ReduceOp::kAvg || op == ReduceOp::kWeightedAvg)) {
      return bad("a prefix has no average");
    }
    if (!std::isfinite(call_.reduction.factor)) return bad("the factor is not finite");
    if (op == ReduceOp::kWeightedAvg && call_.reduction.factor < 0) {
      return bad("the weight is negative");
    }
    return ok();
  }

  Status check_wire_type() {
    if (!call_.wire_type) return ok();
    const DataType wire = *call_.wire_type;
    if (wire == call_.type) {
      spec_.wire_type.reset();
      return ok();
    }
    const bool is_narrow = is_valid(wire) && is_floating_point(wire) && size_bytes(wire) < 4;
    if (call_.collective != Collective::kAllReduce || call_.type != DataType::kFloat32 ||
        !is_narrow || spec_.op == ReduceOp::kUser) {
      return bad(
          "only an all_reduce of float by a built-in operator can have a wire type, and only "
          "one of 8 or 16 bits");
    }
    return ok();
  }

  Status read_counts() {
    const std::uint64_t most = kMostBytes / size_bytes(call_.type);
    const std::uint64_t part_count =
        has_parts(call_.collective) ? static_cast<std::uint64_t>(rank_count_) : 1;
    if (spec_.count > most / part_count) return too_many(spec_.count);
    if (!call_.is_uneven) return ok();
    if (!has_parts(call_.collective)) return bad("it has no uneven form");
    const auto n = static_cast<std::size_t>(rank_count_);
    const auto wrong_size = [&](std::span<const std::uint64_t> counts, const char* what) {
      return bad("it needs " + std::to_string(n) + " " + what + ", one for each rank, and got " +
                 std::to_string(counts.size()));
    };
    if (call_.collective == Collective::kAllToAll) {
      if (call_.counts.size() != n) return wrong_size(call_.counts, "counts to send");
      if (call_.receive_counts.size() != n) {
        return wrong_size(call_.receive_counts, "counts to receive");
      }
      const auto own = static_cast<std::size_t>(rank_);
      if (call_.counts[own] != call_.receive_counts[own]) {
        return bad("it sends itself " + std::to_string(call_.counts[own]) +
                   " elements and expects " + std::to_string(call_.receive_counts[own]));
      }
      spec_.counts.assign(n * n, 0);
      for (std::size_t peer = 0; peer < n; ++peer) {
        spec_.counts[own * n + peer] = call_.counts[peer];
        spec_.counts[peer * n + own] = call_.receive_counts[peer];
      }
    } else if (is_exchange(call_.collective) && rank_ != call_.root) {
      std::uint64_t own = call_.count;
      if (!call_.counts.empty()) {
        if (call_.counts.size() != n) return wrong_size(call_.counts, "counts");
        own = call_.counts[static_cast<std::size_t>(rank_)];
      }
      spec_.counts.assign(n, 0);
      spec_.counts[static_cast<std::size_t>(rank_)] = own;
    } else {
      if (call_.counts.size() != n) return wrong_size(call_.counts, "counts");
      spec_.counts.assign(call_.counts.begin(), call_.counts.end());
    }
    spec_.count = 0;
    std::uint64_t sum = 0;
    for (const std::uint64_t count : spec_.counts) {
      if (count > most - sum) return too_many(count);
      sum += count;
    }
    return ok();
  }

  Status too_many(std::uint64_t count) const {
    return bad(std::to_string(count) + " elements of " + std::string(name(call_.type)) +
               " do not fit into memory");
  }

  Status read_buffers() {
    const Layout layout(spec_);
    const std::uint64_t input_bytes = layout.input_bytes(rank_);
    const std::uint64_t output_bytes = layout.output_bytes(rank_);
    if (input_bytes > 0 && call_.input == nullptr) return bad("the input is null");
    const bool has_identity = call_.collective == Collective::kExclusiveScan &&
                              spec_.op == ReduceOp::kUser && spec_.count > 0 &&
                              call_.reduction.user->identity != nullptr;
    if ((output_bytes > 0 || has_identity) && call_.output == nullptr) {
      return bad("the output is null");
    }
    const auto in = reinterpret_cast<std::uintptr_t>(call_.input);
    const auto out = reinterpret_cast<std::uintptr_t>(call_.output);
    const std::uint64_t written_bytes = has_identity ? spec_.bytes() : output_bytes;
    if (in + input_bytes < in || out + written_bytes < out) {
      return bad("its elements do not fit behind the given address");
    }
    if (input_bytes == 0 || written_bytes == 0) return ok();
    if (in - layout.input_base(rank_) == out - layout.output_base(rank_)) {
      // What is scaled takes part from elsewhere, so that the output may be written at any time.
      spec_.is_in_place = spec_.op != ReduceOp::kPreMulSum && spec_.op != ReduceOp::kWeightedAvg;
      return ok();
    }
    if (in < out + written_bytes && out < in + input_bytes) {
      return bad("input and output overlap without being in place");
    }
    return ok();
  }

  const Call& call_;
  const int rank_;
  const int rank_count_;
  CollectiveSpec& spec_;
};

}  // namespace

Status read_call(const Call& call, int rank, int rank_count, bool is_ordered,
                 CollectiveSpec& spec) {
  return CallReader(call, rank, rank_count, spec).run(is_ordered);
}

}  // namespace polyrail
