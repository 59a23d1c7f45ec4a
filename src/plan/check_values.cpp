// Symbolic execution: memory holds, instead of numbers, the formula each byte was computed by.

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "src/plan/check.hpp"
#include "src/plan/layout.hpp"
#include "src/plan/step_graph.hpp"

namespace polyrail {
namespace {

// Formulas over contributions, each kept once, so that equal formulas have equal numbers.
class Formulas {
 public:
  explicit Formulas(int rank_count) : rank_count_(rank_count) {}

  struct Formula {
    int left = -1;   // formula, or the rank of a contribution
    int right = -1;  // formula; -1: a contribution
    bool is_final = false;
    std::vector<bool> contributors;
  };

  int contribution(int rank) {
    std::vector<bool> contributors(rank_count_);
    contributors[rank] = true;
    return number({rank, -1, false, std::move(contributors)});
  }
  int combination(int left, int right) {
    std::vector<bool> contributors = formulas_[left].contributors;
    for (int rank = 0; rank < rank_count_; ++rank) {
      if (formulas_[right].contributors[rank]) contributors[rank] = true;
    }
    return number({left, right, false, std::move(contributors)});
  }
  int finished(int formula) {
    Formula copy = formulas_[formula];
    copy.is_final = true;
    return number(std::move(copy));
  }
  const Formula& operator[](int number) const { return formulas_[number]; }

  // A rank whose contribution is in both, or -1.
  int common(int a, int b) const {
    for (int rank = 0; rank < rank_count_; ++rank) {
      if (formulas_[a].contributors[rank] && formulas_[b].contributors[rank]) return rank;
    }
    return -1;
  }

 private:
  int number(Formula formula) {
    const auto key = std::make_tuple(formula.left, formula.right, formula.is_final);
    const auto [at, is_new] = numbers_.try_emplace(key, static_cast<int>(formulas_.size()));
    if (is_new) formulas_.push_back(std::move(formula));
    return at->second;
  }

  int rank_count_;
  std::vector<Formula> formulas_;
  std::map<std::tuple<int, int, bool>, int> numbers_;
};

// A stretch of bytes computed by one formula. `origin`: which byte of the vector the first one is.
struct Stretch {
  std::uint64_t bytes = 0;
  std::uint64_t origin = 0;
  int formula = -1;
};

class Memory {
 public:
  void write(std::uint64_t offset, const std::vector<Stretch>& stretches) {
    std::uint64_t bytes = 0;
    for (const Stretch& stretch : stretches) bytes += stretch.bytes;
    split(offset);
    split(offset + bytes);
    held_.erase(held_.lower_bound(offset), held_.lower_bound(offset + bytes));
    for (const Stretch& stretch : stretches) {
      held_.emplace(offset, stretch);
      offset += stretch.bytes;
    }
  }

  // What lies there; shorter than asked for if bytes were never written, from the first of those.
  std::vector<Stretch> read(std::uint64_t offset, std::uint64_t bytes) {
    split(offset);
    split(offset + bytes);
    std::vector<Stretch> stretches;
    const std::uint64_t end = offset + bytes;
    for (auto at = held_.find(offset); at != held_.end() && at->first == offset && offset < end;
         ++at) {
      stretches.push_back(at->second);
      offset += at->second.bytes;
    }
    return stretches;
  }

 private:
  void split(std::uint64_t offset) {
    auto behind = held_.upper_bound(offset);
    if (behind == held_.begin()) return;
    auto& [begin, stretch] = *std::prev(behind);
    const std::uint64_t head = offset - begin;
    if (head == 0 || head >= stretch.bytes) return;
    held_.emplace(offset, Stretch{stretch.bytes - head, stretch.origin + head, stretch.formula});
    stretch.bytes = head;
  }

  std::map<std::uint64_t, Stretch> held_;  // by offset, not overlapping
};

class SymbolicRun {
 public:
  explicit SymbolicRun(const Plan& plan)
      : plan_(plan),
        layout_(plan.spec),
        formulas_(plan.spec.rank_count),
        memories_(plan.spec.rank_count) {
    for (int rank = 0; rank < plan.spec.rank_count; ++rank) {
      const int own = formulas_.contribution(rank);
      for (const Portion& portion : layout_.inputs(rank)) {
        if (portion.bytes == 0) continue;
        write(rank, {Space::kInput, portion.offset_bytes, portion.bytes},
              {{portion.bytes, portion.origin_bytes, own}});
      }
    }
  }

  Status run() {
    const StepGraph graph(plan_);
    const std::vector<StepGraph::Id> order = graph.order();
    for (const StepGraph::Id id : order) {
      if (const std::string wrong = run_step(graph.rank(id), graph.step(id)); !wrong.empty()) {
        return bad(graph.describe(id) + ": " + wrong);
      }
    }
    // Circles are for check_order to explain; what they leave undone shows in the outputs.
    for (int rank = 0; rank < plan_.spec.rank_count; ++rank) {
      if (const std::string wrong = check_output(rank); !wrong.empty()) {
        return bad("rank " + std::to_string(rank) + ": " + wrong);
      }
    }
    return ok();
  }

 private:
  static Status bad(std::string text) {
    return {StatusCode::kInvalidArgument, "plan computes wrong values: " + std::move(text)};
  }
  static std::string range_text(std::uint64_t offset, std::uint64_t bytes) {
    return "bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes);
  }

  void write(int rank, const Slice& slice, const std::vector<Stretch>& stretches) {
    const Layout::Place place = layout_.place(rank, slice);
    memories_[rank][static_cast<std::size_t>(place.memory)].write(place.begin, stretches);
  }

  std::string read(int rank, const Slice& slice, std::vector<Stretch>& stretches) {
    const Layout::Place place = layout_.place(rank, slice);
    stretches = memories_[rank][static_cast<std::size_t>(place.memory)].read(
        place.begin, place.end - place.begin);
    std::uint64_t found = 0;
    for (const Stretch& stretch : stretches) found += stretch.bytes;
    if (found == place.end - place.begin) return {};
    return "byte " + std::to_string(slice.offset_bytes + found) + " of its " +
           std::string(name(slice.space)) + " was never written";
  }

  std::string run_step(int rank, const Step& step) {
    if (step.op == StepOp::kWait) return {};  // the bytes came with the put
    std::vector<Stretch> value;
    if (std::string wrong = read(rank, step.source, value); !wrong.empty()) return wrong;
    if (step.op == StepOp::kReduce) {
      std::vector<Stretch> operand;
      if (std::string wrong = read(rank, step.operand, operand); !wrong.empty()) return wrong;
      std::vector<Stretch> result;
      if (std::string wrong = combine(value, operand, result); !wrong.empty()) return wrong;
      value = std::move(result);
    }
    if (step.is_final) {
      for (Stretch& stretch : value) {
        if (formulas_[stretch.formula].is_final) return "it makes final what is final already";
        stretch.formula = formulas_.finished(stretch.formula);
      }
    }
    write(step.op == StepOp::kPut ? step.peer : rank, step.target, value);
    return {};
  }

  std::string combine(const std::vector<Stretch>& left, const std::vector<Stretch>& right,
                      std::vector<Stretch>& result) {
    std::size_t l = 0, r = 0;
    std::uint64_t l_used = 0, r_used = 0;
    while (l < left.size() && r < right.size()) {
      const std::uint64_t bytes = std::min(left[l].bytes - l_used, right[r].bytes - r_used);
      const std::uint64_t origin = left[l].origin + l_used;
      if (origin != right[r].origin + r_used) {
        return "it combines byte " + std::to_string(origin) + " of the vector with byte " +
               std::to_string(right[r].origin + r_used);
      }
      const int a = left[l].formula;
      const int b = right[r].formula;
      if (formulas_[a].is_final || formulas_[b].is_final) return "an operand is already final";
      if (const int twice = formulas_.common(a, b); twice >= 0) {
        return "rank " + std::to_string(twice) + " contributes twice to " +
               range_text(origin, bytes);
      }
      result.push_back({bytes, origin, formulas_.combination(a, b)});
      if ((l_used += bytes) == left[l].bytes) ++l, l_used = 0;
      if ((r_used += bytes) == right[r].bytes) ++r, r_used = 0;
    }
    return {};
  }

  std::string check_output(int rank) {
    for (const Portion& portion : layout_.outputs(rank)) {
      if (std::string wrong = check_portion(rank, portion); !wrong.empty()) return wrong;
    }
    return {};
  }

  std::string check_portion(int rank, const Portion& portion) {
    std::vector<Stretch> mine;
    if (std::string wrong = read(rank, {Space::kOutput, portion.offset_bytes, portion.bytes}, mine);
        !wrong.empty()) {
      return wrong;
    }
    std::uint64_t done = 0;
    for (const Stretch& stretch : mine) {
      const std::uint64_t offset = portion.offset_bytes + done;
      const std::string where = "output " + range_text(offset, stretch.bytes);
      if (stretch.origin != portion.origin_bytes + done) {
        return where + " hold the result of byte " + std::to_string(stretch.origin);
      }
      for (int one = 0; one < plan_.spec.rank_count; ++one) {
        const bool is_wanted = one >= portion.first && one < portion.end;
        if (formulas_[stretch.formula].contributors[one] == is_wanted) continue;
        return where +
               (is_wanted ? " lack the contribution of rank "
                          : " contain the contribution of rank ") +
               std::to_string(one);
      }
      const bool is_finished = plan_.spec.collective == Collective::kAllReduce ||
                               plan_.spec.collective == Collective::kReduce ||
                               plan_.spec.collective == Collective::kReduceScatter;
      if (is_finished && !formulas_[stretch.formula].is_final && plan_.spec.rank_count > 1) {
        return where + " were not made final";
      }
      if ((plan_.spec.is_ordered || is_scan(plan_.spec.collective)) &&
          !is_in_rank_order(stretch.formula)) {
        return where + " are not reduced from left to right in rank order";
      }
      if (plan_.spec.collective == Collective::kAllReduce && rank > 0 &&
          !equals_rank_0(offset, stretch)) {
        return where + " are reduced in another operand order than on rank 0";
      }
      done += stretch.bytes;
    }
    return {};
  }

  bool equals_rank_0(std::uint64_t offset, const Stretch& stretch) {
    std::vector<Stretch> others;
    (void)read(0, {Space::kOutput, offset, stretch.bytes}, others);
    return std::all_of(others.begin(), others.end(),
                       [&](const Stretch& other) { return other.formula == stretch.formula; });
  }

  // Whether a formula is ((a op b) op c) op d ... with a < b < c < d.
  bool is_in_rank_order(int formula) const {
    int above = plan_.spec.rank_count;
    while (formulas_[formula].right >= 0) {
      const Formulas::Formula& right = formulas_[formulas_[formula].right];
      if (right.right >= 0 || right.left >= above) return false;
      above = right.left;
      formula = formulas_[formula].left;
    }
    return formulas_[formula].left < above;
  }

  const Plan& plan_;
  Layout layout_;
  Formulas formulas_;
  std::vector<std::array<Memory, 4>> memories_;  // by rank and space
};

}  // namespace

Status check_values(const Plan& plan) {
  return SymbolicRun(plan).run();
}

}  // namespace polyrail
