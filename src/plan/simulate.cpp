#include "src/plan/simulate.hpp"

#include <algorithm>
#include <queue>

#include "src/base/assert.hpp"
#include "src/plan/costs.hpp"
#include "src/plan/step_graph.hpp"

namespace polyrail {
namespace {

constexpr double kStepUs = 0.05;             // finding and starting a local step
constexpr double kReduceFactor = 1.5;        // two reads and a write against one of each
constexpr double kStreamedTail = 64 * 1024;  // bytes still to be worked on when the last one landed

class Player {
 public:
  Player(const Plan& plan, const Topology& topology)
      : plan_(plan), topology_(topology), graph_(plan) {}

  Simulation play() {
    set_up();
    for (Id id = 0; id < graph_.size(); ++id) {
      if (missing_[id] == 0) at(0, What::kReady, id);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time_us;
      switch (event.what) {
        case What::kReady:
          ready(event.id);
          break;
        case What::kPosted:
          posted(event.id);
          break;
        case What::kSent:
          sent(event.id);
          break;
        case What::kHead:
          first_byte(event.id);
          break;
        case What::kLanded:
          landed(event.id);
          break;
        case What::kDone:
          done(event.id);
          break;
      }
    }
    for (const Port& port : ports_) {
      if (port.use.bytes > 0) result_.rails.push_back(port.use);
    }
    for (const double us : result_.rank_us) result_.total_us = std::max(result_.total_us, us);
    return std::move(result_);
  }

 private:
  using Id = StepGraph::Id;
  enum class What : std::uint8_t { kReady, kPosted, kSent, kHead, kLanded, kDone };
  struct Event {
    double time_us;
    std::uint64_t number;  // order of equal times
    What what;
    Id id;
    bool operator>(const Event& other) const {
      return time_us != other.time_us ? time_us > other.time_us : number > other.number;
    }
  };
  // A message in the queue of a rail. Messages leave in the order of `fair_us`: how long the rail
  // had served their peer before them, counted from what other peers had got when it was posted.
  struct Queued {
    double fair_us;
    std::uint64_t number;
    Id put;
    bool operator>(const Queued& other) const {
      return fair_us != other.fair_us ? fair_us > other.fair_us : number > other.number;
    }
  };
  // One end of a rail: sends one message at a time, takes in at its own rate.
  struct Port {
    const RailCost* cost = nullptr;
    RailUse use;
    std::priority_queue<Queued, std::vector<Queued>, std::greater<>> queue;
    std::vector<double> peer_fair_us;  // by peer: of the next message for it
    double fair_us = 0;                // of the last message that left
    bool is_sending = false;
    double takes_in_from_us = 0;
  };

  void at(double time_us, What what, Id id) { events_.push({time_us, event_count_++, what, id}); }

  void set_up() {
    const int planes = plan_.plane_count;
    const int ranks = plan_.spec.rank_count;
    for (const Host& host : topology_.hosts) {
      for (const Rail& rail : host.rails) costs_.emplace_back(rail);
    }
    std::vector<std::vector<int>> of_host(topology_.hosts.size(), std::vector<int>(planes, -1));
    port_of_.assign(static_cast<std::size_t>(ranks) * planes, -1);
    for (int rank = 0; rank < ranks; ++rank) {
      const int host = topology_.rank_hosts[rank];
      std::size_t cost = 0;
      for (int h = 0; h < host; ++h) cost += topology_.hosts[h].rails.size();
      for (const Rail& rail : topology_.hosts[host].rails) {
        const RailCost* its_cost = &costs_[cost++];
        if (rail.plane < 0 || rail.plane >= planes) continue;
        const bool is_shared = !is_host_local(rail.kind);
        int& port = of_host[host][rail.plane];
        if (!is_shared || port < 0) {
          port = static_cast<int>(ports_.size());
          ports_.emplace_back();
          ports_.back().cost = its_cost;
          ports_.back().use = {host, is_shared ? -1 : rank, rail.plane};
          ports_.back().peer_fair_us.resize(ranks);
        }
        port_of_[rank * planes + rail.plane] = port;
      }
    }

    missing_.assign(graph_.size(), 0);
    others_done_us_.assign(graph_.size(), 0);
    first_byte_us_.assign(graph_.size(), 0);
    for (Id id = 0; id < graph_.size(); ++id) {
      for (const Id to : graph_.next(id)) ++missing_[to];
    }
    processor_free_us_.assign(ranks, 0);
    result_.rank_us.assign(ranks, 0);
    result_.plane_us.assign(planes, 0);
  }

  Port& port(int rank, int plane) {
    const int index = port_of_[rank * plan_.plane_count + plane];
    PR_ASSERT(index >= 0);
    return ports_[index];
  }
  Port& sender(Id put) { return port(graph_.rank(put), graph_.step(put).rail); }
  Port& receiver(Id put) { return port(graph_.step(put).peer, graph_.step(put).rail); }

  // The rank's processor works for so long, as soon as it is free; returns when it begins.
  double occupy_processor(int rank, double duration_us) {
    const double begin = std::max(now_, processor_free_us_[rank]);
    processor_free_us_[rank] = begin + duration_us;
    return begin;
  }

  void ready(Id id) {
    const Step& step = graph_.step(id);
    if (step.op == StepOp::kPut) {
      at(occupy_processor(graph_.rank(id), sender(id).cost->message_us()), What::kPosted, id);
    } else if (step.op == StepOp::kWait) {
      const double taken = port(graph_.rank(id), step.rail).cost->message_us();
      at(occupy_processor(graph_.rank(id), taken), What::kDone, id);
    } else {
      run_local(id);
    }
  }

  void run_local(Id id) {
    const Step& step = graph_.step(id);
    const int rank = graph_.rank(id);
    const double us_per_byte =
        1e6 / copy_rate(topology_.host_of(rank)) * (step.op == StepOp::kReduce ? kReduceFactor : 1);
    double work_us = static_cast<double>(step.target.bytes) * us_per_byte;
    if (const double since = streaming_since_us(id); since >= 0) {
      // Most of it was done while the bytes came in.
      const double tail_us = std::min(work_us, kStreamedTail * us_per_byte);
      work_us = std::max(work_us - std::max(now_ - since, 0.0), tail_us);
    }
    at(occupy_processor(rank, work_us + kStepUs) + work_us + kStepUs, What::kDone, id);
  }

  // From when on the step could run along with the landing of its operand; < 0: it could not.
  double streaming_since_us(Id id) const {
    const Step& step = graph_.step(id);
    for (const std::uint32_t index : step.after) {
      const Id wait = graph_.id(graph_.rank(id), index);
      if (graph_.step(wait).op != StepOp::kWait || !can_stream(step, graph_.step(wait))) continue;
      return std::max(others_done_us_[id], first_byte_us_[graph_.partner(wait)]);
    }
    return -1;
  }

  double occupancy_us(const Port& port, Id put) const {
    return port.cost->occupancy_us(static_cast<double>(graph_.step(put).source.bytes));
  }

  void posted(Id put) {
    Port& port = sender(put);
    double& peer_us = port.peer_fair_us[graph_.step(put).peer];
    const double fair_us = std::max(peer_us, port.fair_us);
    port.queue.push({fair_us, event_count_++, put});
    peer_us = fair_us + occupancy_us(port, put);
    if (!port.is_sending) send_next(port);
  }

  void send_next(Port& port) {
    const auto [fair_us, number, put] = port.queue.top();
    port.queue.pop();
    port.fair_us = fair_us;
    port.is_sending = true;
    const double busy_us = occupancy_us(port, put);
    port.use.bytes += graph_.step(put).source.bytes;
    port.use.busy_us += busy_us;
    at(now_ + busy_us, What::kSent, put);
    at(now_ + port.cost->latency_us(), What::kHead, put);
  }

  void sent(Id put) {
    Port& port = sender(put);
    port.is_sending = false;
    if (!port.queue.empty()) send_next(port);
  }

  void first_byte(Id put) {
    Port& in = receiver(put);
    const double begin = std::max(now_, in.takes_in_from_us);
    in.takes_in_from_us = begin + occupancy_us(in, put);
    first_byte_us_[put] = begin;
    at(std::max(now_ + occupancy_us(sender(put), put), in.takes_in_from_us), What::kLanded, put);
  }

  void landed(Id put) {
    Port& from = sender(put);
    from.use.last_us = std::max(from.use.last_us, now_);
    double& plane_us = result_.plane_us[graph_.step(put).rail];
    plane_us = std::max(plane_us, now_);
    release(put, graph_.partner(put));
    at(now_ + receiver(put).cost->latency_us(), What::kDone, put);
  }

  void done(Id id) {
    const bool is_put = graph_.step(id).op == StepOp::kPut;
    if (!is_put) {
      double& rank_us = result_.rank_us[graph_.rank(id)];
      rank_us = std::max(rank_us, now_);
    }
    for (const Id to : graph_.next(id)) {
      if (is_put && to == graph_.partner(id)) continue;  // released when it had landed
      release(id, to);
    }
  }

  void release(Id before, Id to) {
    const Step& step = graph_.step(before);
    const bool is_streamed = step.op == StepOp::kWait && can_stream(graph_.step(to), step);
    if (!is_streamed && graph_.followed(to) != before) {
      others_done_us_[to] = std::max(others_done_us_[to], now_);
    }
    if (--missing_[to] == 0) ready(to);
  }

  const Plan& plan_;
  const Topology& topology_;
  StepGraph graph_;
  std::vector<RailCost> costs_;
  std::vector<Port> ports_;
  std::vector<int> port_of_;  // [rank * planes + plane]
  std::vector<std::uint32_t> missing_;
  std::vector<double> others_done_us_;  // by step: all it needs but what it may stream
  std::vector<double> first_byte_us_;   // by put
  std::vector<double> processor_free_us_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t event_count_ = 0;
  double now_ = 0;
  Simulation result_;
};

}  // namespace

Simulation simulate(const Plan& plan, const Topology& topology) {
  return Player(plan, topology).play();
}

}  // namespace polyrail
