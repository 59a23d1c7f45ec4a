#include "perf/tools/perf_case.hpp"

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "perf/tools/perf_data.hpp"

namespace polyrail::perf {
namespace {

// Rank 0 holds a fraction of the vector, the others share the rest.
std::vector<std::uint64_t> uneven_counts(std::uint64_t count, double fraction, int rank_count) {
  const auto n = static_cast<std::size_t>(rank_count);
  std::vector<std::uint64_t> counts(n, count);
  if (n == 1) return counts;
  counts[0] = static_cast<std::uint64_t>(fraction * static_cast<double>(count));
  const std::uint64_t rest = count - counts[0];
  for (std::size_t rank = 1; rank < n; ++rank) {
    counts[rank] = rest / (n - 1) + (rank - 1 < rest % (n - 1) ? 1 : 0);
  }
  return counts;
}

// A count for each pair of ranks: `mean` times a random number to the power of `skew`, scaled so
// that all of them add up to about mean for each pair. All ranks draw the same.
std::vector<std::uint64_t> random_counts(std::uint64_t mean, double skew, std::uint64_t seed,
                                         int rank_count) {
  std::mt19937_64 random(seed);
  std::vector<double> weights(static_cast<std::size_t>(rank_count * rank_count));
  double sum = 0;
  for (double& weight : weights) {
    weight = std::pow(static_cast<double>((random() >> 11) + 1) * 0x1p-53, skew);
    sum += weight;
  }
  std::vector<std::uint64_t> counts;
  const double scale = static_cast<double>(mean) * static_cast<double>(weights.size()) / sum;
  for (double weight : weights) counts.push_back(static_cast<std::uint64_t>(weight * scale));
  return counts;
}

std::uint64_t sum_of(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace

PerfCase::PerfCase(const PerfTest& test, const PerfOptions& options, DataType type, ReduceOp op,
                   int root, std::uint64_t bytes, int rank, int rank_count)
    : is_message_(test.is_message), layout_(spec_), rank_(rank) {
  const auto n = static_cast<std::uint64_t>(rank_count);
  const std::uint64_t count = bytes / size_bytes(type);
  spec_.collective = test.collective;
  spec_.type = type;
  spec_.op = op;
  spec_.rank_count = rank_count;
  spec_.root = root;
  spec_.count = has_parts(test.collective) ? count / n : count;
  if (test.collective == Collective::kBarrier) spec_.count = 0;
  if (test.has_uneven && options.uneven >= 0) {
    spec_.counts = uneven_counts(count, options.uneven, rank_count);
  } else if (test.has_skew) {
    spec_.counts = random_counts(count / n, options.skew, options.seed, rank_count);
    for (std::size_t peer = 0; peer < n; ++peer) {
      sent_.push_back(spec_.counts[static_cast<std::size_t>(rank) * n + peer]);
      received_.push_back(spec_.counts[peer * n + static_cast<std::size_t>(rank)]);
    }
  }
}

std::uint64_t PerfCase::bytes() const {
  const auto n = static_cast<std::uint64_t>(spec_.rank_count);
  if (!spec_.counts.empty()) {
    const std::uint64_t all = sum_of(spec_.counts) * size_bytes(spec_.type);
    return spec_.collective == Collective::kAllToAll ? all / n : all;
  }
  return (has_parts(spec_.collective) ? n : 1) * part_bytes();
}

std::uint64_t PerfCase::count() const {
  return spec_.counts.empty() ? spec_.count : sum_of(spec_.counts) / spec_.counts.size();
}

double PerfCase::bus_factor() const {
  if (is_message_) return 1;
  const double n = spec_.rank_count;
  if (!spec_.counts.empty() && spec_.collective == Collective::kAllToAll) {
    // What goes to other ranks.
    std::uint64_t kept = 0;
    for (int rank = 0; rank < spec_.rank_count; ++rank) {
      kept += spec_.counts[static_cast<std::size_t>(rank * spec_.rank_count + rank)];
    }
    const double all = static_cast<double>(sum_of(spec_.counts));
    return all > 0 ? 1 - static_cast<double>(kept) / all : 0;
  }
  if (spec_.collective == Collective::kAllReduce) return 2 * (n - 1) / n;
  return has_parts(spec_.collective) ? (n - 1) / n : 1;
}

std::uint64_t PerfCase::buffer_count() const {
  return std::max(layout_.input_base(rank_) + layout_.input_bytes(rank_),
                  layout_.output_base(rank_) + layout_.output_bytes(rank_)) /
         size_bytes(spec_.type);
}

std::uint64_t PerfCase::input_base(bool is_in_place) const {
  return is_in_place ? layout_.input_base(rank_) : 0;
}
std::uint64_t PerfCase::output_base(bool is_in_place) const {
  return is_in_place ? layout_.output_base(rank_) : 0;
}

Call PerfCase::call(void* input, void* output) const {
  const bool is_in_place = input == output;
  Call call;
  call.collective = spec_.collective;
  call.input = static_cast<std::byte*>(input) + input_base(is_in_place);
  call.output = static_cast<std::byte*>(output) + output_base(is_in_place);
  call.count = spec_.count;
  call.type = spec_.type;
  if (reduces(spec_.collective)) {
    call.reduction = reduction_of(spec_.op, rank_, spec_.rank_count);
  }
  call.root = spec_.root;
  if (!spec_.counts.empty()) {
    call.is_uneven = true;
    call.counts = sent_.empty() ? spec_.counts : sent_;
    call.receive_counts = received_;
  }
  return call;
}

void PerfCase::erase(void* output) const {
  std::memset(output, 0xee, layout_.output_bytes(rank_));
}

void PerfCase::fill(void* input, bool is_in_place, std::uint64_t seed) const {
  const std::size_t size = size_bytes(spec_.type);
  auto* first = static_cast<std::byte*>(input) + input_base(is_in_place);
  for (const Portion& portion : layout_.inputs(rank_)) {
    std::byte* at = first + portion.offset_bytes;
    if (reduces(spec_.collective) && !is_message_) {
      fill_input(at, portion.bytes / size, spec_.type, spec_.op, rank_, spec_.rank_count, seed,
                 portion.origin_bytes / size);
    } else {
      fill_stream(at, portion.bytes, rank_, seed, portion.origin_bytes);
    }
  }
}

std::uint64_t PerfCase::count_wrong_output(const void* output, bool is_in_place,
                                           std::uint64_t seed) const {
  const std::size_t size = size_bytes(spec_.type);
  const auto* first = static_cast<const std::byte*>(output) + output_base(is_in_place);
  std::uint64_t wrong = 0;
  if (is_message_) {
    const int from = (rank_ + spec_.rank_count - 1) % spec_.rank_count;
    return count_wrong_stream(first, spec_.count, spec_.type, from, seed, 0);
  }
  for (const Portion& portion : layout_.outputs(rank_)) {
    const std::byte* at = first + portion.offset_bytes;
    const std::uint64_t count = portion.bytes / size;
    const std::uint64_t origin = portion.origin_bytes;
    wrong += reduces(spec_.collective)
                 ? count_wrong(at, count, spec_.type, spec_.op, spec_.rank_count, seed,
                               origin / size, portion.end)
                 : count_wrong_stream(at, count, spec_.type, portion.first, seed, origin);
  }
  return wrong;
}

}  // namespace polyrail::perf
