// Happens-before over the moments of a plan: entering the operation, start and end of each step,
// first and last byte landing of each put.

#include <algorithm>
#include <array>

#include "src/plan/check.hpp"
#include "src/plan/layout.hpp"
#include "src/plan/step_graph.hpp"

namespace polyrail {
namespace {

using Moment = std::uint32_t;
constexpr int kRunCount = 2;

// The moments of all runs and which comes before which.
class Moments {
 public:
  Moments(const StepGraph& graph, const OrderRules& rules) : graph_(graph) {
    per_run_ = static_cast<Moment>(graph.size() * 4 + graph.rank_count());
    next_.resize(std::size_t{per_run_} * kRunCount);
    for (int run = 0; run < kRunCount; ++run) add_run(run, rules);
  }

  // For a put, `first_byte` and `last_byte` are moments at the receiver.
  Moment start(int run, StepGraph::Id id) const { return at(run, id * 4); }
  Moment end(int run, StepGraph::Id id) const { return at(run, id * 4 + 1); }
  Moment first_byte(int run, StepGraph::Id put) const { return at(run, put * 4 + 2); }
  Moment last_byte(int run, StepGraph::Id put) const { return at(run, put * 4 + 3); }

  std::size_t size() const { return next_.size(); }
  const std::vector<Moment>& next(Moment moment) const { return next_[moment]; }

  // All moments in an order that respects next().
  std::vector<Moment> order() const {
    std::vector<std::uint32_t> missing(size(), 0);
    for (const auto& followers : next_) {
      for (const Moment to : followers) ++missing[to];
    }
    std::vector<Moment> order;
    for (Moment m = 0; m < size(); ++m) {
      if (missing[m] == 0) order.push_back(m);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const Moment to : next_[order[i]]) {
        if (--missing[to] == 0) order.push_back(to);
      }
    }
    return order;
  }

 private:
  Moment at(int run, StepGraph::Id offset) const { return run * per_run_ + offset; }
  Moment entry(int run, int rank) const {
    return at(run, static_cast<StepGraph::Id>(graph_.size() * 4 + rank));
  }
  void before(Moment a, Moment b) { next_[a].push_back(b); }

  void add_run(int run, const OrderRules& rules) {
    for (StepGraph::Id id = 0; id < graph_.size(); ++id) {
      const Step& step = graph_.step(id);
      const int rank = graph_.rank(id);
      before(entry(run, rank), start(run, id));
      before(start(run, id), end(run, id));
      if (run + 1 < kRunCount) before(end(run, id), entry(run + 1, rank));
      if (step.op == StepOp::kPut) {
        before(start(run, id), first_byte(run, id));
        before(first_byte(run, id), last_byte(run, id));
        before(last_byte(run, id), end(run, id));
        before(last_byte(run, id), end(run, graph_.partner(id)));
        if (rules.receiver_holds_early_bytes) before(entry(run, step.peer), first_byte(run, id));
      }
      for (const std::uint32_t index : step.after) {
        const StepGraph::Id earlier = graph_.id(rank, index);
        if (earlier == graph_.followed(id)) {
          before(start(run, earlier), start(run, id));
          before(end(run, earlier), end(run, id));
        } else if (graph_.step(earlier).op == StepOp::kWait &&
                   can_stream(step, graph_.step(earlier))) {
          before(first_byte(run, graph_.partner(earlier)), start(run, id));
          before(end(run, earlier), end(run, id));
        } else {
          before(end(run, earlier), start(run, id));
        }
      }
    }
  }

  const StepGraph& graph_;
  Moment per_run_ = 0;
  std::vector<std::vector<Moment>> next_;
};

// Bytes of one rank that a step reads or writes, and from when to when.
struct Access {
  std::uint64_t begin_byte = 0;
  std::uint64_t end_byte = 0;
  bool is_write = false;
  bool is_landing = false;
  int run = 0;
  StepGraph::Id step = 0;
  Moment begin = 0;
  Moment end = 0;
};

class OrderCheck {
 public:
  OrderCheck(const Plan& plan, const OrderRules& rules)
      : layout_(plan.spec), graph_(plan), moments_(graph_, rules) {}

  Status run() {
    if (Status status = check_circles(); !status.is_ok()) return status;
    order_ = moments_.order();
    by_memory_.resize(std::size_t{4} * graph_.rank_count());
    for (StepGraph::Id id = 0; id < graph_.size(); ++id) {
      if (is_partly_aliased(graph_.rank(id), graph_.step(id))) {
        return bad(graph_.describe(id) + " writes over a part of what it still reads");
      }
      for (int run = 0; run < kRunCount; ++run) add_accesses(run, id);
    }
    for (std::vector<Access>& accesses : by_memory_) {
      if (Status status = check_memory(accesses); !status.is_ok()) return status;
    }
    return ok();
  }

 private:
  static Status bad(std::string text) {
    return {StatusCode::kInvalidArgument, "plan is not ordered: " + std::move(text)};
  }

  Status check_circles() const {
    std::vector<bool> is_reached(graph_.size(), false);
    for (const StepGraph::Id id : graph_.order()) is_reached[id] = true;
    const auto stuck = std::find(is_reached.begin(), is_reached.end(), false);
    if (stuck == is_reached.end()) return ok();
    const auto id = static_cast<StepGraph::Id>(stuck - is_reached.begin());
    return bad(graph_.describe(id) + " can never be done: it waits in a circle");
  }

  // Element by element a step may replace its own operand, but not a shifted one.
  bool is_partly_aliased(int rank, const Step& step) const {
    if (step.op != StepOp::kReduce && step.op != StepOp::kCopy) return false;
    const Layout::Place target = layout_.place(rank, step.target);
    const auto is_shifted = [&](const Slice& operand) {
      const Layout::Place place = layout_.place(rank, operand);
      return place.overlaps(target) && place.begin != target.begin;
    };
    return is_shifted(step.source) || (step.op == StepOp::kReduce && is_shifted(step.operand));
  }

  void add(int rank, const Slice& slice, Access access) {
    if (slice.bytes == 0) return;
    const Layout::Place place = layout_.place(rank, slice);
    access.begin_byte = place.begin;
    access.end_byte = place.end;
    by_memory_[rank * 4 + static_cast<std::size_t>(place.memory)].push_back(access);
  }

  void add_accesses(int run, StepGraph::Id id) {
    const Step& step = graph_.step(id);
    if (step.op == StepOp::kWait) return;  // its bytes are written by the put
    const int rank = graph_.rank(id);
    Access access{0, 0, false, false, run, id, moments_.start(run, id), moments_.end(run, id)};
    // What has landed has been read, though its sender hears of it later.
    if (step.op == StepOp::kPut) access.end = moments_.last_byte(run, id);
    add(rank, step.source, access);
    if (step.op == StepOp::kReduce) add(rank, step.operand, access);
    access.is_write = true;
    if (step.op == StepOp::kPut) {
      access.is_landing = true;
      access.begin = moments_.first_byte(run, id);
      access.end = moments_.last_byte(run, id);
      add(step.peer, step.target, access);
    } else {
      add(rank, step.target, access);
    }
  }

  // A step may read what is landing for it while it lands.
  bool is_streamed(const Access& landing, const Access& other) const {
    if (!landing.is_landing || other.is_landing || landing.run != other.run) return false;
    const StepGraph::Id wait = graph_.partner(landing.step);
    const Step& step = graph_.step(other.step);
    if (graph_.rank(other.step) != graph_.rank(wait) || !can_stream(step, graph_.step(wait))) {
      return false;
    }
    const auto index = static_cast<std::uint32_t>(wait - graph_.first(graph_.rank(wait)));
    return std::binary_search(step.after.begin(), step.after.end(), index);
  }

  // A step may write over what a put has read while the put goes on.
  bool is_followed(const Access& reading, const Access& writing) const {
    return !reading.is_write && reading.run == writing.run &&
           graph_.followed(writing.step) == reading.step;
  }

  Status check_memory(std::vector<Access>& accesses) const {
    std::sort(accesses.begin(), accesses.end(),
              [](const Access& a, const Access& b) { return a.begin_byte < b.begin_byte; });
    struct Pair {
      std::uint32_t a, b;
      bool is_ordered;
    };
    std::vector<Pair> pairs;
    std::vector<std::uint32_t> open;
    for (std::uint32_t i = 0; i < accesses.size(); ++i) {
      const Access& access = accesses[i];
      std::erase_if(open,
                    [&](std::uint32_t o) { return accesses[o].end_byte <= access.begin_byte; });
      for (const std::uint32_t o : open) {
        const Access& other = accesses[o];
        if (!access.is_write && !other.is_write) continue;
        if (access.begin == other.begin) continue;  // one step's own operands
        pairs.push_back({o, i, false});
      }
      open.push_back(i);
    }

    // Which of a batch of accesses have ended before each moment, one bit for each.
    constexpr std::uint32_t kBatch = 256;
    using Bits = std::array<std::uint64_t, kBatch / 64>;
    for (std::uint32_t first = 0; first < accesses.size(); first += kBatch) {
      std::vector<Bits> ended(moments_.size(), Bits{});
      const auto last = std::min<std::uint32_t>(first + kBatch, accesses.size());
      for (std::uint32_t i = first; i < last; ++i) {
        ended[accesses[i].end][(i - first) / 64] |= std::uint64_t{1} << ((i - first) % 64);
      }
      for (const Moment moment : order_) {
        for (const Moment to : moments_.next(moment)) {
          for (std::size_t w = 0; w < Bits{}.size(); ++w) ended[to][w] |= ended[moment][w];
        }
      }
      const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
        if (a < first || a >= last) return false;
        return (ended[accesses[b].begin][(a - first) / 64] >> ((a - first) % 64) & 1) != 0;
      };
      for (Pair& pair : pairs) {
        if (is_before(pair.a, pair.b) || is_before(pair.b, pair.a)) pair.is_ordered = true;
      }
    }
    for (const Pair& pair : pairs) {
      const Access& a = accesses[pair.a];
      const Access& b = accesses[pair.b];
      if (pair.is_ordered || is_streamed(a, b) || is_streamed(b, a)) continue;
      if (is_followed(a, b) || is_followed(b, a)) continue;
      return bad(describe(a) + " and " + describe(b) + " touch the same bytes, from " +
                 std::to_string(std::max(a.begin_byte, b.begin_byte)) + " on, in no order");
    }
    return ok();
  }

  std::string describe(const Access& access) const {
    const std::string how =
        access.is_landing ? ", landing at rank " + std::to_string(graph_.step(access.step).peer)
        : access.is_write ? ", writing"
                          : ", reading";
    return graph_.describe(access.step) + how + (access.run > 0 ? " in the next run" : "");
  }

  Layout layout_;
  StepGraph graph_;
  Moments moments_;
  std::vector<Moment> order_;
  std::vector<std::vector<Access>> by_memory_;  // [rank * 4 + space]
};

}  // namespace

Status check_order(const Plan& plan, const OrderRules& rules) {
  return OrderCheck(plan, rules).run();
}

Status check(const Plan& plan) {
  if (Status status = check_shape(plan); !status.is_ok()) return status;
  if (Status status = check_values(plan); !status.is_ok()) return status;
  return check_order(plan);
}

}  // namespace polyrail
