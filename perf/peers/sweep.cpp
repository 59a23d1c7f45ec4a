// The shared timing loop: how many calls, when they are timed, and how results are checked.
#include "perf/peers/sweep.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace peers {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLongCallUs = 1e6;  // calls expected to take longer are made once, not warmed up
constexpr std::size_t kLargeBytes = 1 << 20;
constexpr double kShortCallUs = 20.0;  // the clock is read once per kBatch of shorter calls
constexpr std::size_t kBatch = 16;
constexpr double kMaxCalls = 200'000;
// Timed calls move so much or are so many, however few the warm-up let expect: the buckets of idle
// rails pass some hundred KiB at memory speed.
constexpr std::size_t kLeastBytes = 4 << 20;
constexpr std::size_t kEnoughCalls = 64;
constexpr double kPrintedCallUs = 1000.0;
constexpr auto kLookInterval = std::chrono::milliseconds(50);
constexpr float kStop = 1 << 20;  // added to element 0 by rank 0: this call is the last

double seconds_of(Clock::time_point moment) {
  return std::chrono::duration<double>(moment.time_since_epoch()).count();
}

double microseconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

// User and system time of this process, all its threads.
double processor_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What all processors together have done since boot, in seconds.
struct MachineTime {
  double busy = 0;
  double interrupts = 0;  // hard and soft: the network's work that no process is charged for
};

MachineTime machine_time() {
  std::ifstream file("/proc/stat");
  std::string label;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, hard = 0, soft = 0;
  file >> label >> user >> nice >> system >> idle >> waiting >> hard >> soft;
  const double tick_s = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  return {(user + nice + system + hard + soft) * tick_s, (hard + soft) * tick_s};
}

class Sweep {
 public:
  Sweep(const Peer& peer, const SweepOptions& options) : peer_(peer), options_(options) {
    const std::size_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
    small_input_ = allocate(64);
    small_output_ = allocate(64);
    const std::size_t count = shape(largest).buffer_count();
    input_ = allocate(count * sizeof(float));
    output_ = allocate(count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i) input_[i] = input_value(i, peer.rank);
    // The root's buffer of a broadcast, in place, is its input.
    if (options.collective == Collective::kBroadcast && peer.rank == 0) output_ = input_;
  }

  bool run() {
    bool is_right = true;
    for (const std::size_t size : options_.sizes) is_right = measure(size) && is_right;
    finish();
    return is_right;
  }

  bool repeat() {
    const CallShape call_shape = shape(options_.sizes.front());
    agree(0);
    call(call_shape.count());
    const bool is_right = repeat_until_stopped(call_shape);
    finish();
    return is_right;
  }

 private:
  float* allocate(std::size_t bytes) {
    constexpr std::size_t kPage = 4096;
    bytes = (bytes + kPage - 1) / kPage * kPage;
    float* memory = nullptr;
    if (peer_.allocate) {
      memory = peer_.allocate(bytes);
    } else {
      memory = static_cast<float*>(std::aligned_alloc(kPage, bytes));
      owned_.emplace_back(memory, &std::free);
    }
    if (memory == nullptr) throw std::runtime_error("out of memory: " + std::to_string(bytes));
    std::fill_n(memory, bytes / sizeof(float), 0.0F);
    return memory;
  }

  CallShape shape(std::size_t size) const {
    return {options_.collective, size, peer_.rank, peer_.rank_count};
  }

  void call(std::size_t count) {
    if (options_.collective == Collective::kAllReduce) {
      peer_.all_reduce(input_, output_, count);
    } else if (options_.collective == Collective::kBroadcast) {
      peer_.other(Collective::kBroadcast, output_, output_, count);
    } else {
      peer_.other(options_.collective, input_, output_, count);
    }
  }

  // Rank 0's number, the same on every rank; also the barrier.
  double agree(double value) {
    small_input_[0] = peer_.rank == 0 ? static_cast<float>(value) : 0.0F;
    peer_.all_reduce(small_input_, small_output_, 1);
    return small_output_[0];
  }

  double sum_over_ranks(double value) {
    small_input_[0] = static_cast<float>(value);
    peer_.all_reduce(small_input_, small_output_, 1);
    return small_output_[0];
  }

  double greatest_of_ranks(double value) {
    double greatest = 0;
    for (int rank = 0; rank < peer_.rank_count; ++rank) {
      greatest = std::max(greatest, sum_over_ranks(rank == peer_.rank ? value : 0));
    }
    return greatest;
  }

  // The slowest rank's mean time of some calls.
  double timed_us(std::size_t calls, std::size_t count) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < calls; ++i) call(count);
    return greatest_of_ranks(microseconds_between(start, Clock::now()) /
                             static_cast<double>(calls));
  }

  std::size_t calls_within(double seconds, double call_us) const {
    return static_cast<std::size_t>(
        std::clamp(seconds * 1e6 / std::max(call_us, 0.01), 2.0, kMaxCalls));
  }

  // From the size before, if both are so large that the time grows with the size.
  double expected_us(std::size_t size) const {
    if (previous_size_ < kLargeBytes || size < previous_size_) return 0;
    return previous_us_ * static_cast<double>(size) / static_cast<double>(previous_size_);
  }

  bool measure(std::size_t size) {
    const std::size_t count = shape(size).count();
    std::size_t calls = 1;
    std::size_t batch = 1;
    if (expected_us(size) < kLongCallUs) {
      call(count);
      double call_us = timed_us(1, count);
      call_us = timed_us(calls_within(options_.warmup_s, call_us), count);
      if (call_us < kShortCallUs) batch = kBatch;
      calls = std::max(calls_within(options_.budget_s, call_us),
                       std::min(kEnoughCalls, kLeastBytes / size));
      calls = (calls + batch - 1) / batch * batch;
    }
    return time_calls(size, calls, batch);
  }

  bool time_calls(std::size_t size, std::size_t calls, std::size_t batch) {
    const CallShape call_shape = shape(size);
    const std::size_t count = call_shape.count();
    std::vector<double> times;
    times.reserve(calls / batch);
    if (output_ != input_) {
      std::fill_n(output_, call_shape.output_count(), std::numeric_limits<float>::quiet_NaN());
    }
    agree(0);
    const double processor_before = processor_s();
    const MachineTime machine_before = machine_time();
    const auto start = Clock::now();
    auto last = start;
    for (std::size_t done = 0; done < calls; done += batch) {
      for (std::size_t i = 0; i < batch; ++i) call(count);
      const auto now = Clock::now();
      times.push_back(microseconds_between(last, now) / static_cast<double>(batch));
      last = now;
    }
    const double own_mean_us = microseconds_between(start, last) / static_cast<double>(calls);
    const double own_processor_s = processor_s() - processor_before;
    const MachineTime machine = machine_time();
    const auto per_call_us = [calls](double seconds) {
      return seconds * 1e6 / static_cast<double>(calls);
    };
    const double wrong = sum_over_ranks(static_cast<double>(count_wrong(call_shape, 0)));
    // Of all ranks the slowest: a root that only sends is done before the others have it all.
    const double mean_us = greatest_of_ranks(own_mean_us);
    const double processor_us = sum_over_ranks(per_call_us(own_processor_s));
    previous_size_ = size;
    previous_us_ = mean_us;
    std::sort(times.begin(), times.end());
    print({{"collective", name(options_.collective)},
           {"bytes", size},
           {"calls", calls},
           {"mean_us", mean_us},
           {"median_us", times[times.size() / 2]},
           {"min_us", times.front()},
           {"max_us", times.back()},
           {"processor_us", processor_us},
           {"machine_busy_us", per_call_us(machine.busy - machine_before.busy)},
           {"machine_interrupts_us", per_call_us(machine.interrupts - machine_before.interrupts)},
           {"wrong", wrong}});
    return wrong == 0;
  }

  bool repeat_until_stopped(const CallShape& call_shape) {
    const float usual = call_shape.expected_value(0);
    const double processor_before = processor_s();
    const MachineTime machine_before = machine_time();
    const auto start = Clock::now();
    std::size_t calls = 0;
    bool is_last = false;
    while (!is_last) {
      const auto begin = Clock::now();
      if (peer_.rank == 0 && is_time_up(start, begin)) input_[0] += kStop;
      call(call_shape.count());
      const auto end = Clock::now();
      ++calls;
      is_last = output_[0] != usual;
      const double us = microseconds_between(begin, end);
      if (us >= kPrintedCallUs) print({{"end_s", seconds_of(end)}, {"call_us", us}});
    }
    const double seconds = seconds_of(Clock::now()) - seconds_of(start);
    const MachineTime machine = machine_time();
    const double own_processor_s = processor_s() - processor_before;
    const double wrong = sum_over_ranks(static_cast<double>(count_wrong(call_shape, kStop)));
    const double processor = sum_over_ranks(own_processor_s);
    print({{"bytes", options_.sizes.front()},
           {"calls", calls},
           {"seconds", seconds},
           {"processor_s", processor},
           {"machine_busy_s", machine.busy - machine_before.busy},
           {"machine_interrupts_s", machine.interrupts - machine_before.interrupts},
           {"wrong", wrong}});
    return wrong == 0;
  }

  bool is_time_up(Clock::time_point start, Clock::time_point now) {
    if (microseconds_between(start, now) >= options_.repeat_s * 1e6) return true;
    if (options_.until_file.empty() || now - last_look_ < kLookInterval) return false;
    last_look_ = now;
    return access(options_.until_file.c_str(), F_OK) == 0;
  }

  std::size_t count_wrong(const CallShape& call_shape, float added_to_first) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < call_shape.output_count(); ++i) {
      const float added = i == 0 ? added_to_first : 0.0F;
      // Not "!=" on purpose: an element that nobody wrote is not a number.
      if (!(output_[i] == call_shape.expected_value(i) + added)) ++wrong;
    }
    return wrong;
  }

  // The processor time of all ranks since their start, for whoever accounts for the machine.
  void finish() { print({{"process_s", sum_over_ranks(processor_s())}}); }

  void print(const nlohmann::json& record) const {
    if (peer_.rank == 0) std::cout << record.dump() << std::endl;
  }

  const Peer& peer_;
  const SweepOptions& options_;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> owned_;
  float* small_input_ = nullptr;
  float* small_output_ = nullptr;
  float* input_ = nullptr;
  float* output_ = nullptr;
  std::size_t previous_size_ = 0;
  double previous_us_ = 0;
  Clock::time_point last_look_;  // for until_file
};

}  // namespace

void add_sweep_options(CLI::App& app, SweepOptions& options) {
  std::map<std::string, Collective> collectives;
  for (const Collective each : kAllCollectives) collectives.emplace(name(each), each);
  app.add_option("--collective", options.collective, "What to call; all_reduce if not given")
      ->transform(CLI::CheckedTransformer(collectives));
  app.add_option("--sizes", options.sizes, "Bytes, comma-separated, at least 4 each")
      ->delimiter(',')
      ->required()
      ->check(CLI::Range(std::size_t{4}, std::size_t{1} << 34));
  app.add_option("--budget", options.budget_s, "Seconds of timed calls per size")
      ->capture_default_str();
  app.add_option("--warmup", options.warmup_s, "Seconds of calls before that")
      ->capture_default_str();
  app.add_option("--repeat", options.repeat_s,
                 "All-reduce of the first size again and again for seconds");
  app.add_option("--until", options.until_file,
                 "With --repeat: end it as soon as this file is there");
}

int run_sweep(const Peer& peer, const SweepOptions& options) {
  const bool is_all_reduce = options.collective == Collective::kAllReduce;
  if (!is_all_reduce && !peer.other) throw std::runtime_error("it has only all_reduce");
  if (!is_all_reduce && options.repeat_s > 0) throw std::runtime_error("--repeat is all_reduce's");
  Sweep sweep(peer, options);
  return (options.repeat_s > 0 ? sweep.repeat() : sweep.run()) ? 0 : 1;
}

int guarded_main(const std::string& program, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    std::cerr << program << ": " << error.what() << std::endl;
    return 1;
  }
}

int environment_number(const char* name, int fallback) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  try {
    return std::stoi(text);
  } catch (const std::exception&) {
    throw std::runtime_error(std::string(name) + "=" + text + " is not a number");
  }
}

}  // namespace peers
