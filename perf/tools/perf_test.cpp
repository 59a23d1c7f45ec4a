// A perf test: time and check of a collective over sizes, in the manner of nccl-tests.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>

#include "perf/tools/perf_case.hpp"
#include "perf/tools/perf_data.hpp"
#include "perf/tools/perf_options.hpp"
#include "perf/tools/perf_ranks.hpp"
#include "perf/tools/perf_report.hpp"
#include "perf/tools/perf_test.hpp"

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

// Processes of one running kernel read the same clock; 0 if it has no name.
std::uint64_t clock_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  file >> text;
  return text.empty() ? 0 : std::hash<std::string>{}(text);
}

// One rank's part of the test.
class RankTest {
 public:
  RankTest(const PerfTest& test, const PerfOptions& options, Communicator& communicator,
           Report& report)
      : test_(test),
        options_(options),
        communicator_(communicator),
        report_(report),
        rank_(communicator.rank()),
        rank_count_(communicator.rank_count()) {}

  Status run() {
    if (has_root(test_.collective) && options_.root >= rank_count_) {
      return {StatusCode::kInvalidArgument, "--root: " + std::to_string(options_.root) +
                                                " is not one of " + std::to_string(rank_count_) +
                                                " ranks"};
    }
    if (Status status = introduce(); !status.is_ok()) return status;
    for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
      for (DataType type : options_.types) {
        for (ReduceOp op : options_.ops) {
          if (test_.reduces() && !can_reduce(type, op)) continue;
          if (test_.is_message && op != options_.ops.front()) continue;
          if (Status status = sweep_roots(type, op); !status.is_ok()) return status;
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

  Status sweep_roots(DataType type, ReduceOp op) {
    const bool has_all = has_root(test_.collective) && options_.root < 0;
    const int first = has_all ? 0 : std::max(options_.root, 0);
    const int last = has_all ? rank_count_ - 1 : first;
    for (int root = first; root <= last; ++root) {
      if (Status status = sweep(type, op, root); !status.is_ok()) return status;
    }
    return ok();
  }

  Status sweep(DataType type, ReduceOp op, int root) {
    const PerfCase largest(test_, options_, type, op, root, options_.max_bytes, rank_, rank_count_);
    const bool is_shared = options_.local_register != 0;
    Buffer input(largest.buffer_count(), type, is_shared, options_.unalign);
    Buffer output(largest.buffer_count(), type, is_shared, options_.unalign);
    double bytes = static_cast<double>(options_.min_bytes);
    while (bytes <= static_cast<double>(options_.max_bytes)) {
      const PerfCase one(test_, options_, type, op, root, static_cast<std::uint64_t>(bytes), rank_,
                         rank_count_);
      Row row;
      row.count = one.count();
      row.bytes = one.bytes();
      row.part_bytes = one.part_bytes();
      if (!is_barrier()) row.type = std::string(name(type));
      if (test_.reduces()) {
        row.op = std::string(name(op));
        row.short_op = std::string(short_name(op));
      }
      if (has_root(test_.collective)) row.root = root;
      show_progress(row);
      if (Status status = measure(one, input, output, row); !status.is_ok()) return status;
      if (rank_ == 0) {
        clear_progress();
        report_.add(row);
        if (options_.explains && !test_.is_message) {
          std::printf("%s\n", communicator_.explain(one.call(input.data(), output.data())).c_str());
        }
      }
      if (is_barrier()) break;
      bytes = options_.step_factor > 0 ? bytes * options_.step_factor
                                       : bytes + static_cast<double>(options_.step_bytes);
    }
    return ok();
  }

  Status measure(const PerfCase& one, const Buffer& input, const Buffer& output, Row& row) {
    Result<Timing> out_of_place = time_calls(one, input.data(), output.data());
    if (!out_of_place.is_ok()) return out_of_place.status();
    row.out_of_place = std::move(out_of_place).value();
    if (!is_barrier() && !test_.is_message && !options_.style_osu) {
      Result<Timing> in_place = time_calls(one, input.data(), input.data());
      if (!in_place.is_ok()) return in_place.status();
      row.in_place = std::move(in_place).value();
    }
    // Of uneven all-to-all a rank knows its own counts only: each limit holds, the largest counts.
    // What a rank sends it could as well broadcast.
    double limit_us =
        communicator_.limit_us(test_.is_message ? Call::broadcast(input.data(), input.data(),
                                                                  one.bytes(), DataType::kUint8, 0)
                                                : one.call(input.data(), output.data()));
    const Status status =
        communicator_.all_reduce(&limit_us, &limit_us, 1, DataType::kFloat64, ReduceOp::kMax);
    if (limit_us > 0 && rank_count_ > 1) {
      row.limit_busbw = static_cast<double>(row.bytes) * one.bus_factor() / limit_us / 1e3;
    }
    return status;
  }

  bool is_barrier() const { return test_.collective == Collective::kBarrier; }

  Status run_messages(const Call& call) {
    const Message messages[] = {
        Message::receive(call.output, call.count, call.type,
                         (rank_ + rank_count_ - 1) % rank_count_),
        Message::send(call.input, call.count, call.type, (rank_ + 1) % rank_count_)};
    if (options_.is_blocking && options_.aggregated == 1) {
      return communicator_.run(std::span(messages));
    }
    std::vector<Work> works;
    for (int i = 0; i < options_.aggregated; ++i) {
      works.push_back(communicator_.start(std::span(messages)));
    }
    for (Work& work : works) {
      if (Status status = work.wait(); !status.is_ok()) return status;
    }
    return ok();
  }

  Status run_calls(const Call& call) {
    if (test_.is_message) return run_messages(call);
    if (options_.is_blocking && options_.aggregated == 1) return communicator_.run(call);
    std::vector<Work> works;
    for (int i = 0; i < options_.aggregated; ++i) works.push_back(communicator_.start(call));
    for (Work& work : works) {
      if (Status status = work.wait(); !status.is_ok()) return status;
    }
    return ok();
  }

  // In place: input == output.
  Result<Timing> time_calls(const PerfCase& one, void* input, void* output) {
    const bool is_in_place = input == output;
    const Call call = one.call(input, output);
    one.fill(input, is_in_place, 1);
    for (int i = 0; i < options_.warmup_iterations; ++i) {
      if (Status s = run_calls(call); !s.is_ok()) return s;
    }
    if (Status s = communicator_.barrier(); !s.is_ok()) return s;
    Timing timing;
    const double start_processor_us = processor_us();
    double start_us = now_us();
    double last_us = start_us;
    for (int i = 0; i < options_.iterations; ++i) {
      if (options_.style_osu) {
        // OSU's latency is of calls that begin together: the barrier is not in it.
        const double before_us = now_us();
        if (Status s = communicator_.barrier(); !s.is_ok()) return s;
        last_us = now_us();
        start_us += last_us - before_us;
      }
      if (Status s = run_calls(call); !s.is_ok()) return s;
      if (!options_.has_iteration_times) continue;
      const double now = now_us();
      if (i >= options_.skipped_iterations) {
        timing.iteration_us.push_back((now - last_us) / options_.aggregated);
      }
      last_us = now;
    }
    const double calls = static_cast<double>(options_.iterations) * options_.aggregated;
    const double mine_us =
        (options_.reports_cpu_time ? processor_us() - start_processor_us : now_us() - start_us) /
        calls;
    Result<double> time_us = combine(mine_us);
    if (!time_us.is_ok()) return time_us.status();
    timing.time_us = time_us.value();
    timing.algbw = static_cast<double>(one.bytes()) / timing.time_us / 1e3;
    timing.busbw = timing.algbw * one.bus_factor();
    if (!options_.is_checked) return timing;
    Result<std::int64_t> wrong =
        is_barrier() ? check_barrier() : check(one, input, output, is_in_place);
    if (!wrong.is_ok()) return wrong.status();
    timing.wrong = wrong.value();
    return timing;
  }

  // Wrong elements of all ranks after one more call with other inputs.
  Result<std::int64_t> check(const PerfCase& one, void* input, void* output, bool is_in_place) {
    if (!is_in_place) one.erase(output);
    one.fill(input, is_in_place, 2);
    if (Status s = run_calls(one.call(input, output)); !s.is_ok()) return s;
    auto wrong = static_cast<std::int64_t>(one.count_wrong_output(output, is_in_place, 2));
    const Status status =
        communicator_.all_reduce(&wrong, &wrong, 1, DataType::kInt64, ReduceOp::kSum);
    if (!status.is_ok()) return status;
    return wrong;
  }

  // Each rank in turn comes late: how often somebody left before it had entered. -1 if the ranks do
  // not read the same clock.
  Result<std::int64_t> check_barrier() {
    constexpr double kLate_us = 300;
    std::int64_t wrong = 0;
    for (int late = 0; late < rank_count_; ++late) {
      const double begin_us = now_us();
      while (rank_ == late && now_us() < begin_us + kLate_us) {
      }
      double entered_us = now_us();
      if (Status s = communicator_.barrier(); !s.is_ok()) return s;
      double left_us = now_us();
      if (Status s = max_and_min(entered_us, left_us); !s.is_ok()) return s;
      wrong += left_us < entered_us;
    }
    const std::uint64_t clock = clock_id();
    std::uint64_t largest = clock;
    std::uint64_t least = clock;
    if (Status s = max_and_min(largest, least); !s.is_ok()) return s;
    return largest == least ? wrong : -1;
  }
  template <typename T>
  Status max_and_min(T& largest, T& least) {
    constexpr DataType kType = DataTypeOf<T>::value;
    if (Status s = communicator_.all_reduce(&largest, &largest, 1, kType, ReduceOp::kMax);
        !s.is_ok()) {
      return s;
    }
    return communicator_.all_reduce(&least, &least, 1, kType, ReduceOp::kMin);
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
      std::fprintf(stderr, "\r\033[K... %llu bytes, type %s, operator %s",
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

  const PerfTest& test_;
  const PerfOptions& options_;
  Communicator& communicator_;
  Report& report_;
  const int rank_;
  const int rank_count_;
};

int run(const PerfTest& test, int argc, char** argv) {
  const PerfOptions options = parse_perf_options(argc, argv, test);
  const std::string program = test.program();
  Result<Options> library = options_from_environment();
  if (!library.is_ok()) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), library.status().message().c_str());
    return 2;
  }
  if (options.timeout_s > 0) library.value().operation_timeout_ms = 1000LL * options.timeout_s;
  Report report(options, test, argc, argv);
  std::atomic<bool> is_reporter{false};
  const Status status =
      run_ranks(options.threads, library.value(), [&](Communicator& communicator) {
        if (communicator.rank() == 0) is_reporter = true;
        return RankTest(test, options, communicator, report).run();
      });
  if (!status.is_ok()) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), status.message().c_str());
    return status.code() == StatusCode::kInvalidArgument ? 2 : 1;
  }
  return is_reporter && !report.end() ? 1 : 0;
}

}  // namespace

int run_perf_test(std::string_view name, int argc, char** argv) {
  for (const PerfTest& test : kPerfTests) {
    if (test.name != name) continue;
    try {
      return run(test, argc, argv);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", test.program().c_str(), error.what());
      return 1;
    }
  }
  std::fprintf(stderr, "there is no perf test \"%s\"\n", std::string(name).c_str());
  return 2;
}

}  // namespace polyrail::perf
