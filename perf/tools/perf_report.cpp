#include "perf/tools/perf_report.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include <polyrail/polyrail.h>

namespace polyrail::perf {
namespace {

struct Spread {
  double min = 0;
  double max = 0;
  double p99 = 0;
  double variation = 0;  // per cent
};

Spread spread(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double square = 0;
  for (double value : values) square += (value - mean) * (value - mean);
  const auto index = static_cast<std::size_t>(std::ceil(0.99 * n)) - 1;
  return {values.front(), values.back(), values[index],
          mean > 0 ? 100 * std::sqrt(square / n) / mean : 0};
}

// Five significant characters, like nccl-tests: 8.123, 81.23, 812.3, 8123.
std::string number(double value, int width) {
  char text[64];
  const int digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
  std::snprintf(text, sizeof text, "%*.*f", width, digits, value);
  return text;
}

// A type's name in at most eight characters.
std::string short_type(const std::string& type) {
  if (type.starts_with("complex")) return "cmplx" + type.substr(7);
  const std::size_t index = type.find("_index");
  return index == std::string::npos ? type : type.substr(0, index) + "_i";
}

std::string timing_text(const std::optional<Timing>& measured, bool has_iteration_times) {
  char text[160];
  if (!measured) {
    std::snprintf(text, sizeof text, " %8s %6s %6s %6s", "N/A", "N/A", "N/A", "N/A");
    return text + std::string(has_iteration_times ? 33 : 0, ' ');
  }
  const Timing& timing = *measured;
  std::string wrong = timing.wrong < 0 ? "N/A" : std::to_string(timing.wrong);
  std::snprintf(text, sizeof text, " %s %s %s %6s", number(timing.time_us, 8).c_str(),
                number(timing.algbw, 6).c_str(), number(timing.busbw, 6).c_str(), wrong.c_str());
  std::string line = text;
  if (has_iteration_times) {
    const Spread s = spread(timing.iteration_us);
    std::snprintf(text, sizeof text, " %s %s %s %5.1f", number(s.min, 8).c_str(),
                  number(s.max, 8).c_str(), number(s.p99, 8).c_str(), s.variation);
    line += text;
  }
  return line;
}

nlohmann::json to_json(const std::optional<Timing>& measured, bool has_iteration_times) {
  if (!measured) return nullptr;
  const Timing& timing = *measured;
  nlohmann::json json = {
      {"time", timing.time_us}, {"alg_bw", timing.algbw}, {"bus_bw", timing.busbw}};
  json["nwrong"] = timing.wrong < 0 ? nlohmann::json("N/A") : nlohmann::json(timing.wrong);
  if (has_iteration_times) {
    const Spread s = spread(timing.iteration_us);
    json["iter_times"] = timing.iteration_us;
    json["i_min"] = s.min;
    json["i_max"] = s.max;
    json["i_p99"] = s.p99;
    json["i_cv"] = s.variation;
  }
  return json;
}

}  // namespace

Report::Report(const PerfOptions& options, const PerfTest& test, int argc, char** argv)
    : options_(options), test_(test) {
  for (int i = 0; i < argc; ++i) command_ += (i > 0 ? " " : "") + std::string(argv[i]);
}

void Report::begin(const std::vector<RankLine>& ranks) {
  ranks_ = ranks;
  if (options_.style_osu) {
    std::printf("# Polyrail %s latency\n# %-8s%18s\n", std::string(test_.name).c_str(), "Size",
                "Avg Latency(us)");
    std::fflush(stdout);
    return;
  }
  std::printf("# polyrail-perf version %d.%d.%d\n# Collective test starting: %s\n", POLYRAIL_MAJOR,
              POLYRAIL_MINOR, POLYRAIL_PATCH, test_.program().c_str());
  std::printf(
      "# nThread %d nGpus 1 minBytes %llu maxBytes %llu step: %g(%s) warmup iters: %d iters: %d "
      "agg iters: %d validation: %d\n",
      options_.threads, static_cast<unsigned long long>(options_.min_bytes),
      static_cast<unsigned long long>(options_.max_bytes),
      options_.step_factor > 0 ? options_.step_factor : static_cast<double>(options_.step_bytes),
      options_.step_factor > 0 ? "factor" : "bytes", options_.warmup_iterations,
      options_.iterations, options_.aggregated, options_.is_checked ? 1 : 0);
  if (options_.uneven >= 0) {
    std::printf("# rank 0 holds %g of the vector, the others share the rest\n", options_.uneven);
  }
  if (test_.has_skew) {
    std::printf("# counts drawn with skew %g, seed %llu\n", options_.skew,
                static_cast<unsigned long long>(options_.seed));
  }
  std::printf("#\n# Using ranks\n");
  for (const RankLine& line : ranks_) {
    std::printf("#  Rank %2d Group  0 Pid %6d on %s rails %s\n", line.rank, line.pid,
                line.host.c_str(), line.rails.c_str());
  }
  const bool more = options_.has_iteration_times;
  const char* spread_1 = more ? "    i_min    i_max    i_p99  i_cv" : "";
  const char* spread_2 = more ? "     (us)     (us)     (us)   (%)" : "";
  std::printf("#\n# %10s %11s %8s %5s %4s %8s %6s %6s %6s%s %8s %6s %6s %6s%s %6s %6s\n", "size",
              "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", spread_1,
              "time", "algbw", "busbw", "#wrong", spread_1, "limit", "%limit");
  std::printf("# %10s %11s %8s %5s %4s %8s %6s %6s %6s%s %8s %6s %6s %6s%s %6s %6s\n", "(B)",
              "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", spread_2, "(us)", "(GB/s)",
              "(GB/s)", "", spread_2, "(GB/s)", "");
  std::fflush(stdout);
}

void Report::add(const Row& row) {
  rows_.push_back(row);
  if (options_.style_osu) {
    std::printf("%-10llu%18.2f\n", static_cast<unsigned long long>(row.part_bytes),
                row.out_of_place.time_us);
    std::fflush(stdout);
    return;
  }
  std::string limit = "   N/A    N/A";
  if (row.limit_busbw > 0) {
    char text[32];
    std::snprintf(text, sizeof text, "%s %6.1f", number(row.limit_busbw, 6).c_str(),
                  100 * row.out_of_place.busbw / row.limit_busbw);
    limit = text;
  }
  std::string stamp;
  if (options_.has_timestamps) {
    char text[32];
    const std::time_t now = std::time(nullptr);
    std::tm broken{};
    localtime_r(&now, &broken);
    std::strftime(text, sizeof text, " %H:%M:%S", &broken);
    stamp = text;
  }
  std::printf("  %10llu %11llu %8s %5s %4d%s%s %s%s\n", static_cast<unsigned long long>(row.bytes),
              static_cast<unsigned long long>(row.count), short_type(row.type).c_str(),
              row.short_op.c_str(), row.root,
              timing_text(row.out_of_place, options_.has_iteration_times).c_str(),
              timing_text(row.in_place, options_.has_iteration_times).c_str(), limit.c_str(),
              stamp.c_str());
  std::fflush(stdout);
}

bool Report::end() {
  std::int64_t wrong = 0;
  double sum = 0;
  std::size_t timing_count = 0;
  const auto take = [&](const Timing& timing) {
    wrong += std::max<std::int64_t>(0, timing.wrong);
    sum += timing.busbw;
    ++timing_count;
  };
  for (const Row& row : rows_) {
    take(row.out_of_place);
    if (row.in_place) take(*row.in_place);
  }
  const double average = timing_count == 0 ? 0 : sum / static_cast<double>(timing_count);
  if (!options_.style_osu) {
    std::printf(
        "# Out of bounds values : %lld %s\n# Avg bus bandwidth    : %g\n#\n"
        "# Collective test concluded: %s\n",
        static_cast<long long>(wrong), wrong == 0 ? "OK" : "FAILED", average,
        test_.program().c_str());
  }
  if (!options_.json_file.empty()) {
    nlohmann::json json;
    json["version"] = {POLYRAIL_MAJOR, POLYRAIL_MINOR, POLYRAIL_PATCH};
    json["test"] = test_.program();
    json["args"] = command_;
    if (options_.uneven >= 0) json["uneven"] = options_.uneven;
    if (test_.has_skew) json.update({{"skew", options_.skew}, {"seed", options_.seed}});
    json["ranks"] = nlohmann::json::array();
    for (const RankLine& line : ranks_) {
      json["ranks"].push_back(
          {{"rank", line.rank}, {"pid", line.pid}, {"host", line.host}, {"rails", line.rails}});
    }
    json["results"] = nlohmann::json::array();
    for (const Row& row : rows_) {
      nlohmann::json item = {
          {"size", row.bytes},
          {"count", row.count},
          {"type", row.type},
          {"redop", row.op},
          {"root", row.root},
          {"out_of_place", to_json(row.out_of_place, options_.has_iteration_times)},
          {"in_place", to_json(row.in_place, options_.has_iteration_times)}};
      if (row.limit_busbw > 0) {
        item["limit_bus_bw"] = row.limit_busbw;
        item["percent_of_limit"] = 100 * row.out_of_place.busbw / row.limit_busbw;
      }
      json["results"].push_back(std::move(item));
    }
    json["out_of_bounds"] = {{"out_of_bounds", wrong}, {"okay", wrong == 0}};
    json["average_bus_bandwidth"] = average;
    std::ofstream file(options_.json_file);
    file << json.dump(1) << "\n";
    file.close();
    if (!file) {
      std::fprintf(stderr, "cannot write '%s'\n", options_.json_file.c_str());
      return false;
    }
  }
  return wrong == 0;
}

}  // namespace polyrail::perf
