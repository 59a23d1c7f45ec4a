// Why a plan, as a page of text.

#include <algorithm>
#include <array>
#include <cstdio>

#include "src/plan/simulate.hpp"
#include "src/plan/study.hpp"
#include "topology/units.hpp"

namespace polyrail {
namespace {

// Rows of words, printed in columns: the first ones left-aligned, the others right-aligned. A note
// stands behind its row and takes part in no column.
class Table {
 public:
  explicit Table(std::size_t left_columns) : left_columns_(left_columns) {}

  void add(std::vector<std::string> cells, std::string note = {}) {
    rows_.push_back({std::move(cells), std::move(note)});
  }

  std::string text() const {
    std::vector<std::size_t> widths;
    for (const Row& row : rows_) {
      widths.resize(std::max(widths.size(), row.cells.size()));
      for (std::size_t c = 0; c < row.cells.size(); ++c) {
        widths[c] = std::max(widths[c], row.cells[c].size());
      }
    }
    std::string text;
    for (const Row& row : rows_) {
      std::string line;
      for (std::size_t c = 0; c < row.cells.size(); ++c) {
        const std::string padding(widths[c] - row.cells[c].size(), ' ');
        line += "  " + (c < left_columns_ ? row.cells[c] + padding : padding + row.cells[c]);
      }
      line += "  " + row.note;
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string note;
  };

  std::size_t left_columns_;
  std::vector<Row> rows_;
};

template <typename... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  std::array<char, 256> buffer{};
  std::snprintf(buffer.data(), buffer.size(), pattern, arguments...);
  return buffer.data();
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return format(unit == 0 || bytes >= 100 ? "%.0f %s" : "%.3g %s", bytes, kUnits[unit]);
}

std::string percent_text(double part) {
  return format("%.1f %%", 100 * part);
}

// "1 host", "3 hosts"
std::string counted(std::size_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

class Explanation {
 public:
  Explanation(const Plan& plan, const Topology& topology, const PlanOptions& options)
      : plan_(plan), topology_(topology), options_(options) {}

  std::string text() {
    add_call();
    if (plan_.spec.rank_count < 2) {
      text_ += "One rank alone: its result is its input.\n";
      return std::move(text_);
    }
    Result<Study> studied = study(topology_, plan_.spec, options_);
    if (!studied.is_ok()) return text_ + studied.status().message() + "\n";
    study_ = std::move(studied).value();
    simulation_ = simulate(plan_, topology_);
    add_choice();
    add_candidates();
    add_rails();
    add_limit();
    return std::move(text_);
  }

 private:
  void add_call() {
    const CollectiveSpec& spec = plan_.spec;
    std::vector<bool> is_used(topology_.hosts.size(), false);
    for (const int host : topology_.rank_hosts) is_used[host] = true;
    const auto hosts = static_cast<std::size_t>(std::count(is_used.begin(), is_used.end(), true));
    text_ += std::string(name(spec.collective));
    if (spec.collective != Collective::kBarrier) {
      const bool has_counts = !spec.counts.empty();
      text_ += " of " + (has_counts ? "uneven counts of" : std::to_string(spec.count)) + " " +
               std::string(name(spec.type)) + " (" + bytes_text(static_cast<double>(spec.bytes())) +
               (has_parts(spec.collective) ? " in all" : "") + "), ";
      if (reduces(spec.collective)) text_ += std::string(name(spec.op)) + ", ";
      if (spec.is_ordered) text_ += "in rank order, ";
      if (has_root(spec.collective)) text_ += "root " + std::to_string(spec.root) + ", ";
      text_ += spec.is_in_place ? "in place" : "out of place";
    }
    text_ += ", " + counted(static_cast<std::size_t>(spec.rank_count), "rank") + " on " +
             counted(hosts, "host") + "\n";
  }

  std::string of_limit(double us) const {
    return us > 0 && plan_.limit_us > 0 ? percent_text(plan_.limit_us / us) : "-";
  }

  static std::string rails_of(const Recipe& recipe) {
    std::string text;
    for (const Strand& strand : recipe.strands) {
      if (strand.plane < 0) return "mixed";
      text += (text.empty() ? "" : " ") + std::to_string(strand.plane);
    }
    return text.empty() ? "-" : text;
  }

  void add_choice() {
    const Candidate& chosen = study_.candidates[study_.chosen];
    text_ += "\nPlan: " + plan_.algorithm + ", predicted " + readable_time(plan_.predicted_us) +
             ", " + of_limit(plan_.predicted_us) + " of the limit " +
             readable_time(plan_.limit_us) + "\n  " +
             std::string(chosen.recipe.algorithm.generator->idea) + "\n";
    if (plan_.algorithm != study_.plan.algorithm || plan_.schedules != study_.plan.schedules) {
      text_ += "  This is not the plan that would be made now; what follows is about that one.\n";
    }
    if (!options_.algorithm.empty()) text_ += "  The algorithm was asked for.\n";
  }

  void add_candidates() {
    // The best of each algorithm, fastest first.
    std::vector<std::size_t> shown;
    for (std::size_t c = 0; c < study_.candidates.size(); ++c) {
      const std::string name = study_.candidates[c].recipe.algorithm.name();
      const auto same = std::find_if(shown.begin(), shown.end(), [&](std::size_t s) {
        return study_.candidates[s].recipe.algorithm.name() == name;
      });
      const bool is_chosen = c == study_.chosen;
      if (same == shown.end()) {
        shown.push_back(c);
      } else if (is_chosen ||
                 (*same != study_.chosen &&
                  study_.candidates[c].predicted_us < study_.candidates[*same].predicted_us)) {
        *same = c;
      }
    }
    std::stable_sort(shown.begin(), shown.end(), [&](std::size_t a, std::size_t b) {
      return study_.candidates[a].predicted_us < study_.candidates[b].predicted_us;
    });
    text_ += "\nCandidates (the best of each algorithm; alike ones go to the simpler)\n";
    Table table(1);
    table.add({"algorithm", "chunks", "rails", "predicted", "of limit", "steps"});
    for (const std::size_t c : shown) {
      const Candidate& candidate = study_.candidates[c];
      table.add({candidate.recipe.algorithm.name(), std::to_string(candidate.recipe.chunk_count),
                 rails_of(candidate.recipe), readable_time(candidate.predicted_us),
                 of_limit(candidate.predicted_us), std::to_string(candidate.step_count)},
                c == study_.chosen ? "<- chosen" : "");
    }
    text_ += table.text();
    for (const std::string& left_out : study_.left_out) {
      text_ += "  not tried: " + left_out + "\n";
    }
  }

  // The rails of all hosts on one plane, seen together.
  struct PlaneView {
    std::string name;
    RailKind kind = RailKind::kTcp;
    double slowest = 0, fastest = 0;
    double latency_us = 0;
    double share = 0;                  // of the bytes that cross hosts, or of all on one host
    const RailUse* busiest = nullptr;  // the one that is busy longest
  };

  PlaneView view(int plane) const {
    PlaneView view;
    for (const Host& host : topology_.hosts) {
      for (const Rail& rail : host.rails) {
        if (rail.plane != plane) continue;
        const RailCost cost(rail);
        if (view.name.empty()) {
          view.name = rail.name;
          view.kind = rail.kind;
          view.slowest = view.fastest = cost.bytes_per_s();
        }
        view.slowest = std::min(view.slowest, cost.bytes_per_s());
        view.fastest = std::max(view.fastest, cost.bytes_per_s());
        view.latency_us = std::max(view.latency_us, cost.latency_us());
      }
    }
    double all = 0;
    for (const RailUse& use : simulation_.rails) {
      if (use.rank >= 0 && is_across_hosts(topology_)) continue;
      all += static_cast<double>(use.bytes);
      if (use.plane == plane) view.share += static_cast<double>(use.bytes);
    }
    if (all > 0) view.share /= all;
    for (const RailUse& use : simulation_.rails) {
      if (use.plane != plane) continue;
      if (view.busiest == nullptr || use.busy_us > view.busiest->busy_us) view.busiest = &use;
    }
    return view;
  }

  std::string verdict(int plane) const {
    const Candidate& chosen = study_.candidates[study_.chosen];
    for (std::size_t r = 0; r < study_.routes.size(); ++r) {
      if (study_.routes[r].plane != plane) continue;
      switch (chosen.verdicts[r]) {
        case Split::Verdict::kUsed:
          return "left out: its share is too small to cut off";
        case Split::Verdict::kTooLate:
          return "left out: others end before its first byte";
        case Split::Verdict::kNoGain:
          return "left out: saves less than a message costs";
      }
    }
    return is_across_hosts(topology_) ? "not used: it does not join all hosts"
                                      : "not used: other rails are nearer to the ranks";
  }

  void add_rails() {
    text_ += "\nRails (sent: the most by one sender; busy: of the predicted time)\n";
    Table table(3);
    table.add({"plane", "rail", "kind", "rate", "latency", "share", "sent", "busy"});
    const RailUse* bottleneck = nullptr;
    for (int plane = 0; plane < topology_.plane_count(); ++plane) {
      const PlaneView plane_view = view(plane);
      if (plane_view.name.empty()) continue;
      const RateStyle style = is_host_local(plane_view.kind) ? RateStyle::kBytes : RateStyle::kBits;
      std::string rate = readable_rate(plane_view.slowest, style);
      if (plane_view.fastest > plane_view.slowest * 1.02) {
        rate += " to " + readable_rate(plane_view.fastest, style);
      }
      std::vector<std::string> row = {std::to_string(plane), plane_view.name,
                                      std::string(name(plane_view.kind)), rate,
                                      readable_time(plane_view.latency_us)};
      if (plane_view.busiest == nullptr) {
        table.add(std::move(row), verdict(plane));
      } else {
        row.push_back(plane_view.share > 0 ? percent_text(plane_view.share) : "in host");
        row.push_back(bytes_text(static_cast<double>(plane_view.busiest->bytes)));
        row.push_back(percent_text(plane_view.busiest->busy_us / simulation_.total_us));
        if (bottleneck == nullptr || plane_view.busiest->busy_us > bottleneck->busy_us) {
          bottleneck = plane_view.busiest;
        }
        table.add(std::move(row));
      }
    }
    text_ += table.text();
    if (bottleneck == nullptr) return;
    text_ += "Bottleneck: ";
    const double busy = bottleneck->busy_us / simulation_.total_us;
    if (busy < 0.5) {
      text_ += "latency and local work; no rail is busy half of the time\n";
      return;
    }
    text_ += "plane " + std::to_string(bottleneck->plane) + " of " +
             (bottleneck->rank < 0 ? "host " + topology_.hosts[bottleneck->host].name
                                   : "rank " + std::to_string(bottleneck->rank)) +
             ", busy " + percent_text(busy) + " of the time\n";
  }

  void add_limit() {
    text_ += "Limit: " + readable_time(plan_.limit_us);
    if (plan_.spec.collective != Collective::kAllReduce) {
      text_ +=
          ": what must leave or reach each host by the host's rate, what all must send\n"
          "  together by all rates, and the last byte arrives one latency later.\n";
      return;
    }
    text_ +=
        ": each host must send the vector once, N hosts together 2(N-1) times, and the\n"
        "  last byte arrives one latency later. On one host the same holds for its ranks.\n";
  }

  const Plan& plan_;
  const Topology& topology_;
  const PlanOptions& options_;
  Study study_;
  Simulation simulation_;
  std::string text_;
};

}  // namespace

std::string explain(const Plan& plan, const Topology& topology, const PlanOptions& options) {
  return Explanation(plan, topology, options).text();
}

}  // namespace polyrail
