// all_reduce_perf: time and check of all-reduce over sizes, in the manner of nccl-tests.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "perf/tools/perf_data.hpp"
#include "perf/tools/perf_options.hpp"
#include "perf/tools/perf_ranks.hpp"
#include "perf/tools/perf_report.hpp"

namespace polyrail::perf {
namespace {

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double processor_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& t) {
    return 1e6 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

// One rank's part of the test.
class RankTest {
 public:
  RankTest(const PerfOptions& options, Communicator& communicator, Report& report)
      : options_(options),
        communicator_(communicator),
        report_(report),
        rank_(communicator.rank()),
        rank_count_(communicator.rank_count()) {}

  Status run() {
    if (Status status = introduce(); !status.is_ok()) return status;
    for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
      for (DataType type : options_.types) {
        for (ReduceOp op : options_.ops) {
          if (!can_reduce(type, op)) continue;
          if (Status status = sweep(type, op); !status.is_ok()) return status;
        }
      }
    }
    if (options_.shows_rails && rank_ == 0) show_rails();
    return ok();
  }

 private:
  void show_rails() const {
    std::uint64_t total = 0;
    for (const RailReport& rail : communicator_.rails()) total += rail.bytes_sent;
    std::printf("# %-12s %14s %6s %12s %12s\n", "rail", "bytes sent", "%", "MB/s start",
                "MB/s now");
    for (const RailReport& rail : communicator_.rails()) {
      std::printf("# %-12s %14llu %6.1f %12.1f %12.1f\n", rail.name.c_str(),
                  static_cast<unsigned long long>(rail.bytes_sent),
                  total > 0
                      ? 100.0 * static_cast<double>(rail.bytes_sent) / static_cast<double>(total)
                      : 0.0,
                  rail.bytes_per_s / 1e6, rail.current_bytes_per_s / 1e6);
    }
  }

  // Rank 0 learns who the others are: their lines travel as sums of byte vectors.
  Status introduce() {
    constexpr std::size_t kLine = 256;
    std::vector<std::int32_t> all(kLine * static_cast<std::size_t>(rank_count_), 0);
    std::string rails;
    for (const RailReport& rail : communicator_.rails()) {
      rails += (rails.empty() ? "" : ",") + rail.name;
    }
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    std::string line = std::to_string(getpid()) + " " + host + " " + rails;
    line.resize(kLine - 1);
    for (std::size_t i = 0; i < line.size(); ++i) {
      all[kLine * static_cast<std::size_t>(rank_) + i] = static_cast<unsigned char>(line[i]);
    }
    const Status status = communicator_.all_reduce(all.data(), all.data(), all.size(),
                                                   DataType::kInt32, ReduceOp::kSum);
    if (!status.is_ok() || rank_ != 0) return status;
    std::vector<RankLine> lines;
    for (int rank = 0; rank < rank_count_; ++rank) {
      std::string text;
      for (std::size_t i = 0; i < kLine; ++i) {
        const int c = all[kLine * static_cast<std::size_t>(rank) + i];
        if (c == 0) break;
        text += static_cast<char>(c);
      }
      RankLine out;
      out.rank = rank;
      out.pid = std::atoi(text.c_str());
      const std::size_t first = text.find(' ');
      const std::size_t second = text.find(' ', first + 1);
      out.host = text.substr(first + 1, second - first - 1);
      out.rails = text.substr(second + 1);
      lines.push_back(std::move(out));
    }
    report_.begin(lines);
    return ok();
  }

  Status sweep(DataType type, ReduceOp op) {
    const std::uint64_t most = options_.max_bytes / size_bytes(type);
    const bool is_shared = options_.local_register != 0;
    Buffer input(most, type, is_shared, options_.unalign);
    Buffer output(most, type, is_shared, options_.unalign);
    double bytes = static_cast<double>(options_.min_bytes);
    while (bytes <= static_cast<double>(options_.max_bytes)) {
      const std::uint64_t count = static_cast<std::uint64_t>(bytes) / size_bytes(type);
      Row row;
      row.count = count;
      row.bytes = count * size_bytes(type);
      row.type = std::string(name(type));
      row.op = std::string(name(op));
      show_progress(row);
      Result<Timing> out_of_place = time_calls(input, output, count, type, op, false);
      if (!out_of_place.is_ok()) return out_of_place.status();
      Result<Timing> in_place = time_calls(input, output, count, type, op, true);
      if (!in_place.is_ok()) return in_place.status();
      row.out_of_place = std::move(out_of_place).value();
      row.in_place = std::move(in_place).value();
      const double limit_us =
          communicator_.limit_us(Call::all_reduce(input.data(), output.data(), count, type, op));
      if (limit_us > 0 && rank_count_ > 1) {
        row.limit_busbw = static_cast<double>(row.bytes) * factor() / limit_us / 1e3;
      }
      if (rank_ == 0) {
        clear_progress();
        report_.add(row);
        if (options_.explains) {
          std::printf(
              "%s\n",
              communicator_.explain(Call::all_reduce(input.data(), output.data(), count, type, op))
                  .c_str());
        }
      }
      bytes = options_.step_factor > 0 ? bytes * options_.step_factor
                                       : bytes + static_cast<double>(options_.step_bytes);
    }
    return ok();
  }

  double factor() const { return 2.0 * (rank_count_ - 1) / rank_count_; }

  Status call(const void* input, void* output, std::uint64_t count, DataType type, ReduceOp op) {
    if (options_.is_blocking && options_.aggregated == 1) {
      return communicator_.all_reduce(input, output, count, type, op);
    }
    std::vector<Work> works;
    for (int i = 0; i < options_.aggregated; ++i) {
      works.push_back(communicator_.all_reduce_async(input, output, count, type, op));
    }
    for (Work& work : works) {
      if (Status status = work.wait(); !status.is_ok()) return status;
    }
    return ok();
  }

  Result<Timing> time_calls(Buffer& input, Buffer& output, std::uint64_t count, DataType type,
                            ReduceOp op, bool is_in_place) {
    void* target = is_in_place ? input.data() : output.data();
    fill_input(input.data(), count, type, op, rank_, rank_count_, 1);
    for (int i = 0; i < options_.warmup_iterations; ++i) {
      if (Status s = call(input.data(), target, count, type, op); !s.is_ok()) return s;
    }
    if (Status s = barrier(); !s.is_ok()) return s;
    Timing timing;
    const double start_us = now_us();
    const double start_processor_us = processor_us();
    double last_us = start_us;
    for (int i = 0; i < options_.iterations; ++i) {
      if (Status s = call(input.data(), target, count, type, op); !s.is_ok()) return s;
      if (!options_.has_iteration_times) continue;
      const double now = now_us();
      if (i >= options_.skipped_iterations) {
        timing.iteration_us.push_back((now - last_us) / options_.aggregated);
      }
      last_us = now;
    }
    const double calls = static_cast<double>(options_.iterations) * options_.aggregated;
    double mine_us =
        (options_.reports_cpu_time ? processor_us() - start_processor_us : now_us() - start_us) /
        calls;
    Result<double> time_us = combine(mine_us);
    if (!time_us.is_ok()) return time_us.status();
    timing.time_us = time_us.value();
    timing.algbw = static_cast<double>(count * size_bytes(type)) / timing.time_us / 1e3;
    timing.busbw = timing.algbw * factor();
    if (options_.is_checked) {
      fill_input(input.data(), count, type, op, rank_, rank_count_, 2);
      if (Status s = communicator_.all_reduce(input.data(), target, count, type, op); !s.is_ok()) {
        return s;
      }
      std::int64_t wrong =
          static_cast<std::int64_t>(count_wrong(target, count, type, op, rank_count_, 2));
      if (Status s = communicator_.all_reduce(&wrong, &wrong, 1, DataType::kInt64, ReduceOp::kSum);
          !s.is_ok()) {
        return s;
      }
      timing.wrong = wrong;
    }
    return timing;
  }

  Status barrier() {
    std::int32_t nothing = 0;
    return communicator_.all_reduce(&nothing, &nothing, 1, DataType::kInt32, ReduceOp::kSum);
  }

  // The ranks' times as one, in the way that -a asks for.
  Result<double> combine(double mine_us) {
    constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMin, ReduceOp::kMax};
    double value = options_.average == 0 && rank_ != 0 ? 0 : mine_us;
    const Status status =
        communicator_.all_reduce(&value, &value, 1, DataType::kFloat64, kOps[options_.average]);
    if (!status.is_ok()) return status;
    return value;
  }

  // Long runs on a terminal say what they are at.
  void show_progress(const Row& row) const {
    if (rank_ == 0 && isatty(STDERR_FILENO)) {
      std::fprintf(stderr, "\r\033[K... %llu bytes, %s, %s",
                   static_cast<unsigned long long>(row.bytes), row.type.c_str(), row.op.c_str());
      std::fflush(stderr);
    }
  }
  void clear_progress() const {
    if (isatty(STDERR_FILENO)) {
      std::fprintf(stderr, "\r\033[K");
      std::fflush(stderr);
    }
  }

  const PerfOptions& options_;
  Communicator& communicator_;
  Report& report_;
  const int rank_;
  const int rank_count_;
};

int run(int argc, char** argv) {
  const PerfOptions options = parse_perf_options(argc, argv, "all_reduce_perf",
                                                 "Time and check of all-reduce on host memory.");
  Result<Options> library = options_from_environment();
  if (!library.is_ok()) {
    std::fprintf(stderr, "all_reduce_perf: %s\n", library.status().message().c_str());
    return 2;
  }
  if (options.timeout_s > 0) library.value().operation_timeout_ms = 1000LL * options.timeout_s;
  Report report(options, "all_reduce_perf", argc, argv);
  std::atomic<bool> is_reporter{false};
  const Status status =
      run_ranks(options.threads, library.value(), [&](Communicator& communicator) {
        if (communicator.rank() == 0) is_reporter = true;
        return RankTest(options, communicator, report).run();
      });
  if (!status.is_ok()) {
    std::fprintf(stderr, "all_reduce_perf: %s\n", status.message().c_str());
    return 1;
  }
  return is_reporter && !report.end() ? 1 : 0;
}

}  // namespace
}  // namespace polyrail::perf

int main(int argc, char** argv) {
  try {
    return polyrail::perf::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "all_reduce_perf: %s\n", error.what());
    return 1;
  }
}
