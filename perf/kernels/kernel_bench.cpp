// kernel_bench: the reductions beside what the machine's memory allows, measured in turns.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/kernels.hpp"
#include "perf/kernels/machine.hpp"

namespace polyrail::perf {
namespace {

struct FreeMemory {
  void operator()(std::uint8_t* memory) const { std::free(memory); }
};

// The arrays, as large as the largest case; smaller ones use their beginnings. They begin at unlike
// distances from a page, as arrays of a program do: at equal ones loads wait for stores to others.
class Arrays {
 public:
  explicit Arrays(std::size_t bytes) {
    for (std::size_t i = 0; i < kCount; ++i) {
      memory_[i].reset(static_cast<std::uint8_t*>(std::aligned_alloc(kPage, bytes + kPage)));
      if (!memory_[i]) std::abort();
      // 1 in fp16, small in bf16 and fp32: stays a normal number however often it is added up.
      auto* elements = reinterpret_cast<std::uint16_t*>(memory_[i].get());
      std::fill_n(elements, (bytes + kPage) / sizeof(std::uint16_t), std::uint16_t{0x3c00});
    }
  }
  std::uint8_t* operator[](std::size_t i) const { return memory_[i].get() + i * 5 * 64; }

  static constexpr std::size_t kCount = 9;

 private:
  static constexpr std::size_t kPage = 4096;
  std::unique_ptr<std::uint8_t, FreeMemory> memory_[kCount];
};

// One line of the table: a kernel, and the plain loops it is compared with.
struct Row {
  std::string name;
  std::size_t bytes_moved;
  std::function<void()> kernel;
  std::vector<std::function<void()>> machine;
};

std::string size_text(std::size_t bytes) {
  const bool is_large = bytes >= std::size_t{1} << 20;
  return std::to_string(bytes >> (is_large ? 20 : 10)) + (is_large ? "MiB" : "KiB");
}

// The plain loops that a kernel is compared with: `bytes` per array, of which it writes the last.
std::vector<std::function<void()>> sum_loops(const Arrays& arrays, std::size_t out,
                                             std::size_t bytes) {
  const auto floats = [&](std::size_t i) { return reinterpret_cast<float*>(arrays[i]); };
  const auto loop = [=](MachineLoop which) {
    return
        [=, a = floats(0), b = floats(1), c = floats(out)] { machine_sum(which, a, b, c, bytes); };
  };
  std::vector<std::function<void()>> loops = {loop(MachineLoop::kStored),
                                              loop(MachineLoop::kCompiled)};
  if (out > 1) loops.push_back(loop(MachineLoop::kStreamed));
  return loops;
}
std::vector<std::function<void()>> copy_loops(const Arrays& arrays, std::size_t bytes) {
  const auto loop = [&](MachineLoop which) {
    return [=, a = reinterpret_cast<float*>(arrays[0]), c = reinterpret_cast<float*>(arrays[2])] {
      machine_copy(which, a, c, bytes);
    };
  };
  return {loop(MachineLoop::kStored), loop(MachineLoop::kStreamed)};
}

// `bytes` is the size of the largest array.
std::vector<Row> make_rows(const Arrays& arrays, std::size_t bytes) {
  std::vector<Row> rows;
  for (DataType type : {DataType::kFloat32, DataType::kBfloat16, DataType::kFloat16,
                        DataType::kFloat8E4M3, DataType::kFloat8E5M2, DataType::kInt8}) {
    const std::size_t count = bytes / size_bytes(type);
    for (bool is_in_place : {false, true}) {
      const std::size_t out = is_in_place ? 0 : 2;
      const auto kernel = [=, a = arrays[0], b = arrays[1], c = arrays[out]] {
        reduce(type, ReduceOp::kSum, a, b, c, count);
      };
      rows.push_back(
          {std::string(name(type)) + (is_in_place ? " a+=b " : " c=a+b ") + size_text(bytes),
           3 * bytes, kernel, sum_loops(arrays, out, bytes)});
    }
  }
  const std::size_t float_count = bytes / sizeof(float);
  for (DataType type : {DataType::kBfloat16, DataType::kFloat16, DataType::kFloat8E4M3}) {
    const std::string wire(name(type));
    const std::size_t wire_bytes = float_count * size_bytes(type);
    const auto between = [&](DataType from, DataType to) {
      return [=, a = arrays[0], c = arrays[2]] { cast(from, to, a, c, float_count); };
    };
    // As many bytes as the loop moves: a copy of half of them.
    const auto copies = copy_loops(arrays, (bytes + wire_bytes) / 2);
    rows.push_back({"float to " + wire + " " + size_text(bytes), bytes + wire_bytes,
                    between(DataType::kFloat32, type), copies});
    rows.push_back({wire + " to float " + size_text(bytes), bytes + wire_bytes,
                    between(type, DataType::kFloat32), copies});
    rows.push_back({"float+=" + wire + " " + size_text(bytes), 2 * bytes + wire_bytes,
                    [=, a = arrays[0], b = arrays[1]] {
                      reduce_mixed(ReduceOp::kSum, type, a, b, a, float_count);
                    },
                    sum_loops(arrays, 0, (2 * bytes + wire_bytes) / 3 / 64 * 64)});
  }
  for (DataType type : {DataType::kFloat32, DataType::kBfloat16}) {
    const std::size_t count = bytes / size_bytes(type);
    rows.push_back({std::string(name(type)) + " c=xa+yb " + size_text(bytes), 3 * bytes,
                    [=, a = arrays[0], b = arrays[1], c = arrays[2]] {
                      const void* const sources[] = {a, b};
                      const double factors[] = {0.25, 0.75};
                      scaled_sum(type, sources, factors, c, count);
                    },
                    sum_loops(arrays, 2, bytes)});
  }
  rows.push_back({"copy " + size_text(bytes), 2 * bytes,
                  [=, a = arrays[0], c = arrays[2]] { copy(a, c, bytes); },
                  copy_loops(arrays, bytes)});
  return rows;
}

std::string kernel_name(const Row& row) {
  return row.name + "/kernel";
}
std::string machine_name(const Row& row, std::size_t i) {
  return row.name + "/machine" + std::to_string(i);
}

void register_benchmark(const std::string& name, const std::function<void()>& body,
                        std::size_t bytes_moved) {
  const auto run = [body, bytes_moved](benchmark::State& state) {
    for (auto _ : state) {
      body();
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes_moved));
  };
  benchmark::RegisterBenchmark(name.c_str(), run);
}

// Keeps processor seconds per call, so that other processes' turns do not count.
class Collector final : public benchmark::ConsoleReporter {
 public:
  Collector() : ConsoleReporter(OO_Tabular) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
      seconds_[run.run_name.function_name].push_back(run.cpu_accumulated_time /
                                                     static_cast<double>(run.iterations));
    }
    std::fputc('.', stderr);
  }
  // 0 if it was not run.
  double median_seconds(const std::string& name) const {
    const auto found = seconds_.find(name);
    if (found == seconds_.end()) return 0;
    std::vector<double> sorted = found->second;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  std::map<std::string, std::vector<double>> seconds_;
};

void print_table(const std::vector<Row>& rows, const Collector& collector) {
  std::printf("\n%-26s %12s %14s %12s\n", "", "kernel GB/s", "machine GB/s", "% of machine");
  for (const Row& row : rows) {
    const double kernel = collector.median_seconds(kernel_name(row));
    double machine = 0;  // of the plain loops the fastest
    for (std::size_t i = 0; i < row.machine.size(); ++i) {
      const double seconds = collector.median_seconds(machine_name(row, i));
      if (seconds != 0 && (machine == 0 || seconds < machine)) machine = seconds;
    }
    if (kernel == 0 || machine == 0) continue;
    const auto gb_per_s = [&](double s) { return static_cast<double>(row.bytes_moved) / s / 1e9; };
    std::printf("%-26s %12.2f %14.2f %12.1f\n", row.name.c_str(), gb_per_s(kernel),
                gb_per_s(machine), 100 * machine / kernel);
  }
}

int run(int argc, char** argv) {
  std::vector<std::string> defaults = {"--benchmark_repetitions=11", "--benchmark_min_time=0.05",
                                       "--benchmark_enable_random_interleaving=true"};
  std::vector<char*> arguments = {argv[0]};
  for (std::string& argument : defaults) arguments.push_back(argument.data());
  arguments.insert(arguments.end(), argv + 1, argv + argc);  // later ones win
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  const std::size_t sizes[] = {std::size_t{256} << 10, std::size_t{64} << 20};
  const Arrays arrays(sizes[1]);
  std::vector<Row> rows;
  for (std::size_t bytes : sizes) {
    for (Row& row : make_rows(arrays, bytes)) rows.push_back(std::move(row));
  }
  for (const Row& row : rows) {
    register_benchmark(kernel_name(row), row.kernel, row.bytes_moved);
    for (std::size_t i = 0; i < row.machine.size(); ++i) {
      register_benchmark(machine_name(row, i), row.machine[i], row.bytes_moved);
    }
  }
  std::printf("instruction set %s; sizes are of one array; medians\n", instruction_set());
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  print_table(rows, collector);
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace polyrail::perf

int main(int argc, char** argv) {
  return polyrail::perf::run(argc, argv);
}
