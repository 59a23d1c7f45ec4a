#include "src/comm/calibrate.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "src/base/clock.hpp"
#include "src/comm/arrivals.hpp"
#include "src/comm/pump.hpp"
#include "src/exec/link.hpp"

namespace polyrail {
namespace {

using Json = nlohmann::json;

// In the cookie of the end of a stream.
constexpr std::uint64_t kEndCookie = std::uint64_t{1} << 62;
constexpr double kLingerUs = 50e3;
constexpr std::uint32_t kPing = 1;
constexpr std::uint32_t kPong = 2;
constexpr std::uint32_t kStream = 3;
constexpr std::uint32_t kEnd = 4;
constexpr std::uint32_t kRound = 5;
constexpr int kPingsInARow = 8;
constexpr int kPingTurns = 8;  // of each rail: others may be busy in one
constexpr std::uint64_t kPingBytes = 8;
constexpr std::size_t kMostSlice = 256 * 1024;
constexpr double kDoubtful = 1.3;  // a plane's rates further apart are measured once more,
constexpr double kAgain = 0.2;     // for so much of the time
// Acknowledgements may wait behind all that the other end has queued.
constexpr std::uint64_t kLeastWindow = 512 * 1024;
constexpr std::uint64_t kMostWindow = 16 * 1024 * 1024;
constexpr double kWindowUs = 20000;  // bytes under way: so much of the rail's time
constexpr double kLocalStreamUs = 8000;
constexpr std::uint64_t kEnoughSlices = 64;
constexpr int kRounds = 48;            // of each kind, of small messages,
constexpr std::size_t kMostPeers = 3;  // to so many peers
constexpr double kLeastMessageUs = 0.1;
// Assumed where nothing was measured.
constexpr double kNominalLatencyUs = 30;
constexpr double kNominalBytesPerS = 1e9;
// Of a rail that was lost: no plan will use it.
constexpr double kLostBytesPerS = 1000;

std::uint64_t slice_bytes(RailKind kind) {
  return is_host_local(kind) ? kMostSlice / 4 : 32 * 1024;
}

// Both directions of one joint while it is measured.
struct Probe {
  Joint joint;
  RailKind kind = RailKind::kTcp;
  bool is_sender = false;  // this rank streams to the peer
  // sending
  int pings_sent = 0;
  int pongs = 0;
  double ping_start_us = 0;
  double best_rtt_us = 1e18;
  std::uint64_t flight_bytes = 0;
  std::uint64_t acknowledged_bytes = 0;
  std::vector<Arrival> arrivals;  // at the peer, by its clock
  double best_bytes_per_s = 0;    // of earlier streams
  double start_us = 0;
  double stream_us = 0;
  bool is_end_sent = false;
  double end_sent_us = 0;
  bool is_end_acknowledged = false;
  bool owes_pong = false;
  bool is_down = false;  // lost while it was measured: the others go on
  // receiving
  bool is_end_seen = false;
  bool expects_stream = false;
};

class Calibrator final : public Sink {
 public:
  Calibrator(Bootstrap& bootstrap, Network& network, const Options& options)
      : bootstrap_(bootstrap), network_(network), options_(options), rank_(bootstrap.rank()) {
    for (const Joint& joint : network.joints) {
      Probe probe;
      probe.joint = joint;
      probe.kind = network.transports[joint.transport]->rail().kind;
      probe.is_sender = next_on_plane(rank_, joint.plane) == joint.peer;
      probe.expects_stream = next_on_plane(joint.peer, joint.plane) == rank_;
      probes_.push_back(std::move(probe));
    }
    payload_.resize(kMostSlice);
    landing_.resize(kMostSlice);
  }

  Status run() {
    const double budget_us = 1e3 * static_cast<double>(options_.calibration_ms);
    const double limit_us = 1e3 * static_cast<double>(options_.start_timeout_ms);
    measure_latency(std::min(budget_us / 4, limit_us));
    Result<std::vector<std::string>> barrier = bootstrap_.all_gather("measurement of rails", "");
    if (!barrier.is_ok()) return barrier.status();
    measure_messages(std::min(budget_us / 8, limit_us));
    network_us_ = budget_us * 0.45;
    for (Probe& probe : probes_) {
      probe.stream_us =
          is_host_local(probe.kind) ? std::min(kLocalStreamUs, network_us_ / 4) : network_us_;
    }
    if (Status status = measure_bandwidth(limit_us); !status.is_ok()) return status;
    if (Status status = share(); !status.is_ok() || !is_doubtful_) return status;
    // Known to all ranks. By now the streams have got going.
    for (Probe& probe : probes_) begin_again(probe, budget_us * kAgain);
    if (Status status = measure_bandwidth(limit_us); !status.is_ok()) return status;
    return share();
  }

  // --- Sink
  void on_up(Endpoint&) override {}
  void on_down(Endpoint& endpoint, const Status& why) override {
    if (Probe* probe = find(endpoint)) {
      probe->is_end_seen = probe->is_end_sent = probe->is_down = true;
      const bool has_other = std::any_of(probes_.begin(), probes_.end(), [&](const Probe& other) {
        return other.joint.peer == endpoint.peer() && !other.is_down;
      });
      if (!has_other && failure_.is_ok()) {
        failure_ = {StatusCode::kRemoteError,
                    "the last rail to rank " + std::to_string(endpoint.peer()) +
                        " went down while it was measured: " + why.message()};
      }
    }
  }
  Landing on_slice(Endpoint&, const SliceHeader& header) override {
    if (header.operation != 0 || header.bytes > landing_.size()) return {};
    return {Landing::How::kInto, landing_.data()};
  }
  void on_landed(Endpoint& from, const SliceHeader& header) override {
    Probe* probe = find(from);
    if (probe == nullptr) return;
    const double now = now_us();
    switch (header.signal) {
      case kPing:
        probe->owes_pong = true;
        break;
      case kPong:
        probe->best_rtt_us = std::min(probe->best_rtt_us, now - probe->ping_start_us);
        ++probe->pongs;
        break;
      case kRound:
        ++round_arrivals_;
        break;
      case kEnd:
        probe->is_end_seen = true;
        break;
      default:
        break;
    }
  }
  void on_bytes(Endpoint&, const SliceHeader&, std::uint32_t, std::span<const std::byte>) override {
  }
  void on_acknowledged(Endpoint& to, const Acknowledgement& done) override {
    const std::uint64_t cookie = done.cookie;
    Probe* probe = find(to);
    if (probe == nullptr) return;
    if ((cookie & kEndCookie) != 0) {
      probe->is_end_acknowledged = true;
      return;
    }
    const std::uint64_t bytes = cookie & ~kStartUpCookie;
    probe->flight_bytes -= bytes;
    probe->acknowledged_bytes += bytes;
    if (bytes == 0) return;
    probe->arrivals.push_back({done.landed_us >= 0 ? done.landed_us : now_us(),
                               probe->acknowledged_bytes + done.ahead_bytes});
  }
  void on_control(Endpoint&, std::span<const std::byte>) override {}

 private:
  static void begin_again(Probe& probe, double stream_us) {
    probe.best_bytes_per_s = std::max(probe.best_bytes_per_s, arrival_rate(probe.arrivals));
    probe.stream_us = std::min(probe.stream_us, stream_us);
    probe.is_end_sent = probe.is_end_seen = probe.is_end_acknowledged = probe.is_down;
    probe.acknowledged_bytes = 0;
    probe.arrivals.clear();
  }

  Probe* find(const Endpoint& endpoint) {
    for (Probe& probe : probes_) {
      if (probe.joint.endpoint == &endpoint) return &probe;
    }
    return nullptr;
  }

  // The ranks of a plane form a ring in rank order; on network planes ranks of other hosts come
  // first, since those of one host are joined by other rails.
  int next_on_plane(int rank, int plane) const {
    const Topology& topology = network_.topology;
    const Rail* rail = topology.rail(rank, plane);
    if (rail == nullptr) return -1;
    int fallback = -1;
    for (int i = 1; i < topology.rank_count(); ++i) {
      const int other = (rank + i) % topology.rank_count();
      if (!topology.joins(plane, rank, other)) continue;
      const bool is_same_host = topology.rank_hosts[rank] == topology.rank_hosts[other];
      if (is_host_local(rail->kind) == is_same_host) return other;
      if (fallback < 0) fallback = other;
    }
    return fallback;
  }

  // `flight_bytes` comes back with the acknowledgement.
  bool post(Endpoint& endpoint, std::uint32_t signal, std::uint64_t bytes,
            std::uint64_t flight_bytes) {
    SliceHeader header;
    header.operation = 0;
    header.signal = signal;
    header.bytes = static_cast<std::uint32_t>(bytes);
    return endpoint.put(header, payload_.data(), kStartUpCookie | flight_bytes) != Posted::kBusy;
  }

  bool post(Probe& probe, std::uint32_t signal, std::uint64_t bytes, std::uint64_t flight_bytes) {
    return post(*probe.joint.endpoint, signal, bytes, flight_bytes);
  }

  void answer_pings() {
    for (Probe& probe : probes_) {
      if (probe.owes_pong && post(probe, kPong, kPingBytes, 0)) probe.owes_pong = false;
    }
  }

  // The rails take turns, so that they do not disturb each other.
  void measure_latency(double budget_us) {
    Pump pump(network_.transports);
    const double end = now_us() + budget_us;
    for (int turn = 1; turn <= kPingTurns; ++turn) {
      const int enough = turn * kPingsInARow;
      for (Probe& probe : probes_) {
        if (!probe.is_sender) continue;
        probe.joint.endpoint->expect(true);
        pump.run_until(*this, end, [&] {
          answer_pings();
          if (probe.pings_sent == probe.pongs && probe.pongs < enough) {
            probe.ping_start_us = now_us();
            if (post(probe, kPing, kPingBytes, 0)) ++probe.pings_sent;
          }
          return probe.pongs >= enough || probe.is_down || !failure_.is_ok();
        });
        probe.joint.endpoint->expect(false);
      }
    }
    // Others may still be measuring against this rank; they stop when their budget is over, and
    // are answered while this rank waits for the next phase in measure_bandwidth.
    pump.run_until(*this, end, [&] {
      answer_pings();
      return false;
    });
  }

  // What one message more costs while all ranks are busy with messages: rounds in which every rank
  // sends to several peers and hears from as many, against rounds with one.
  void measure_messages(double budget_us) {
    const std::vector<Endpoint*> peers = round_peers();
    if (peers.size() < 2) return;
    for (Endpoint* peer : peers) peer->expect(true);
    const double deadline = now_us() + budget_us;
    const std::vector<Endpoint*> one_peer = {peers.front()};
    std::vector<double> one_us;
    std::vector<double> all_us;
    bool is_in_time = true;
    for (int i = 0; i < kRounds && is_in_time; ++i) {
      is_in_time = play_round(one_peer, deadline, one_us) && play_round(peers, deadline, all_us);
    }
    for (Endpoint* peer : peers) peer->expect(false);
    if (!is_in_time) return;
    // Each is posted and taken in.
    const double more = 2 * static_cast<double>(peers.size() - 1);
    message_us_ = std::max((median(all_us) - median(one_us)) / more, kLeastMessageUs);
  }

  // At most kMostPeers ranks of other hosts, and as many have this rank among theirs: those at
  // distances in the order of ranks at which all ranks have a rank of another host.
  std::vector<Endpoint*> round_peers() const {
    const std::vector<int>& hosts = network_.topology.rank_hosts;
    const int n = network_.topology.rank_count();
    std::vector<Endpoint*> peers;
    for (int distance = 1; distance < n && peers.size() < kMostPeers; ++distance) {
      bool is_across = true;
      for (int rank = 0; rank < n; ++rank) {
        is_across = is_across && hosts[rank] != hosts[(rank + distance) % n];
      }
      Endpoint* peer = is_across ? quickest_endpoint((rank_ + distance) % n) : nullptr;
      if (peer != nullptr) peers.push_back(peer);
    }
    return peers;
  }

  // On the rail of least latency, as far as this rank knows.
  Endpoint* quickest_endpoint(int peer) const {
    std::map<int, double> rtt_of_plane;
    for (const Probe& probe : probes_) {
      if (probe.is_sender) rtt_of_plane[probe.joint.plane] = probe.best_rtt_us;
    }
    Endpoint* best = nullptr;
    double best_us = 1e300;
    for (const Probe& probe : probes_) {
      if (probe.joint.peer != peer || probe.is_down || is_host_local(probe.kind)) continue;
      const auto known = rtt_of_plane.find(probe.joint.plane);
      const double rtt_us = known == rtt_of_plane.end() ? 1e18 : known->second;
      if (rtt_us < best_us) best = probe.joint.endpoint;
      best_us = std::min(best_us, rtt_us);
    }
    return best;
  }

  // A message to each of `peers` and one from as many. False: not over in time.
  bool play_round(const std::vector<Endpoint*>& peers, double deadline_us,
                  std::vector<double>& lengths_us) {
    const double begin = now_us();
    round_due_ += peers.size();
    std::size_t posted = 0;
    const bool is_over = Pump(network_.transports).run_until(*this, deadline_us, [&] {
      answer_pings();
      while (posted < peers.size() && post(*peers[posted], kRound, kPingBytes, 0)) ++posted;
      return (posted == peers.size() && round_arrivals_ >= round_due_) || !failure_.is_ok();
    });
    lengths_us.push_back(now_us() - begin);
    return is_over && failure_.is_ok();
  }

  static double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  Status measure_bandwidth(double limit_us) {
    const double begin = now_us();
    for (Probe& probe : probes_) probe.start_us = begin;
    Pump pump(network_.transports);
    const bool is_over = pump.run_until(*this, begin + limit_us, [&] {
      answer_pings();
      bool all_over = true;
      for (Probe& probe : probes_) {
        if (probe.is_sender) stream(probe);
        all_over = all_over && (!probe.is_sender || is_end_away(probe)) &&
                   (!probe.expects_stream || probe.is_end_seen);
      }
      return all_over || !failure_.is_ok();
    });
    if (!failure_.is_ok()) return failure_;
    if (is_over) return ok();
    std::string missing;
    for (const Probe& probe : probes_) {
      if (probe.expects_stream && !probe.is_end_seen) {
        missing += " rank " + std::to_string(probe.joint.peer) + " on plane " +
                   std::to_string(probe.joint.plane) + ";";
      }
    }
    return {StatusCode::kTimeout, "measuring the rails took longer than " +
                                      std::to_string(options_.start_timeout_ms) +
                                      " ms; waiting for" + missing};
  }

  // The end of a stream may need this side's progress until it is there. That it is may be known to
  // the peer alone, which goes on without saying so.
  static bool is_end_away(const Probe& probe) {
    if (!probe.is_end_sent || probe.is_end_acknowledged || probe.is_down) return probe.is_end_sent;
    return now_us() - probe.end_sent_us > kLingerUs;
  }

  void stream(Probe& probe) {
    if (probe.is_end_sent) return;
    const double elapsed_us = now_us() - probe.start_us;
    // A local rail that turns out to be slow is measured as long as the others.
    const bool is_enough = probe.acknowledged_bytes >= kEnoughSlices * slice_bytes(probe.kind);
    if (elapsed_us >= probe.stream_us && (is_enough || elapsed_us >= network_us_)) {
      // Last of all, so that nothing keeps it from arriving at once.
      if (probe.flight_bytes == 0) probe.is_end_sent = post(probe, kEnd, 0, kEndCookie);
      if (probe.is_end_sent) probe.end_sent_us = now_us();
      return;
    }
    const double rate = static_cast<double>(probe.acknowledged_bytes) / std::max(elapsed_us, 1.0);
    const std::uint64_t window =
        std::clamp(static_cast<std::uint64_t>(rate * kWindowUs), kLeastWindow, kMostWindow);
    const std::uint64_t bytes = slice_bytes(probe.kind);
    while (probe.flight_bytes + bytes <= std::max(window, bytes) &&
           post(probe, kStream, bytes, bytes)) {
      probe.flight_bytes += bytes;
    }
  }

  // Tells all ranks what was seen here, and writes the curves from what all say.
  Status share() {
    Json mine = Json::array();
    if (message_us_ > 0) mine.push_back({"message", rank_, -1, message_us_});
    for (const Probe& probe : probes_) {
      if (probe.is_down) {
        mine.push_back({"down", rank_, probe.joint.plane, 0.0});
        continue;
      }
      if (probe.is_sender && probe.pongs > 0) {
        mine.push_back({"latency", rank_, probe.joint.plane, probe.best_rtt_us / 2});
      }
      if (probe.is_sender) {
        mine.push_back({"rate", rank_, probe.joint.plane,
                        std::max(arrival_rate(probe.arrivals), probe.best_bytes_per_s)});
      }
    }
    const std::vector<std::uint8_t> message = Json::to_msgpack(mine);
    Result<std::vector<std::string>> all = bootstrap_.all_gather(
        "exchange of measurements", std::string(message.begin(), message.end()));
    if (!all.is_ok()) return all.status();
    struct Sum {
      double latency_us = 1e18;
      double bytes_per_s = 0;
      int rank_count = 0;
      bool is_down = false;
    };
    std::map<std::pair<int, int>, Sum> by_host_and_plane;
    double message_us = 0;  // the sum of what ranks say
    int message_rank_count = 0;
    const auto& rank_hosts = network_.topology.rank_hosts;
    try {
      for (const std::string& text : all.value()) {
        for (const Json& row : Json::from_msgpack(text)) {
          const double value = row.at(3);
          if (row.at(0) == "message") {
            message_us += value;
            ++message_rank_count;
            continue;
          }
          Sum& sum = by_host_and_plane[{rank_hosts.at(row.at(1)), row.at(2)}];
          if (row.at(0) == "down") {
            sum.is_down = true;
          } else if (row.at(0) == "latency") {
            sum.latency_us = std::min(sum.latency_us, value);
          } else {
            sum.bytes_per_s += value;
            ++sum.rank_count;
          }
        }
      }
    } catch (const std::exception& error) {
      return {StatusCode::kInternalError,
              std::string("a rank's measurements cannot be read: ") + error.what()};
    }
    // Most rails are alike at both ends; else a stream may have been slow to start.
    std::map<int, std::pair<double, double>> range_of_plane;
    for (const auto& [key, sum] : by_host_and_plane) {
      if (sum.rank_count == 0) continue;
      const double rate = sum.bytes_per_s / sum.rank_count;
      auto& [least, most] = range_of_plane.try_emplace(key.second, rate, rate).first->second;
      least = std::min(least, rate);
      most = std::max(most, rate);
    }
    is_doubtful_ = std::any_of(range_of_plane.begin(), range_of_plane.end(), [](const auto& range) {
      return range.second.first * kDoubtful < range.second.second;
    });
    for (auto& [key, sum] : by_host_and_plane) {
      for (Rail& rail : network_.topology.hosts[key.first].rails) {
        if (rail.plane != key.second) continue;
        if (sum.latency_us > 1e9) sum.latency_us = kNominalLatencyUs;
        // The ranks of a host share a network rail; a host-local one is each rank's own.
        if (is_host_local(rail.kind) && sum.rank_count > 0) sum.bytes_per_s /= sum.rank_count;
        if (sum.is_down) sum.bytes_per_s = kLostBytesPerS;
        const bool is_measured = sum.bytes_per_s > 0;
        rail.curve =
            CostCurve::linear(sum.latency_us, is_measured ? sum.bytes_per_s : kNominalBytesPerS);
        if (message_rank_count > 0 && !is_host_local(rail.kind)) {
          rail.message_us = message_us / message_rank_count;
        }
        rail.provenance = is_measured ? Provenance::kMeasured : Provenance::kNominal;
      }
    }
    return ok();
  }

  Bootstrap& bootstrap_;
  Network& network_;
  const Options& options_;
  const int rank_;
  std::vector<Probe> probes_;
  std::uint64_t round_due_ = 0;       // messages that were to arrive in rounds up to now
  std::uint64_t round_arrivals_ = 0;  // that did
  double message_us_ = 0;             // 0: not measured
  bool is_doubtful_ = false;          // the hosts' rates of a plane are far apart
  double network_us_ = 0;             // how long network rails are measured
  std::vector<std::byte> payload_;    // what is sent
  std::vector<std::byte> landing_;    // where everything lands
  Status failure_;
};

}  // namespace

Status calibrate(Bootstrap& bootstrap, Network& network, const Options& options, Logger logger) {
  if (options.calibration_ms > 0 && bootstrap.rank_count() > 1) {
    if (Status status = Calibrator(bootstrap, network, options).run(); !status.is_ok()) {
      return status;
    }
  }
  for (Host& host : network.topology.hosts) {
    for (Rail& rail : host.rails) {
      if (rail.curve.is_empty()) {
        rail.curve = CostCurve::linear(kNominalLatencyUs, kNominalBytesPerS);
      }
      logger->info("host {} rail {}: {:.1f} us, {:.1f} MB/s, {:.1f} us a message, {}", host.name,
                   rail.name, rail.curve.latency_us(), rail.curve.bytes_per_s() / 1e6,
                   rail.message_us,
                   rail.provenance == Provenance::kMeasured ? "measured" : "nominal");
    }
  }
  return ok();
}

}  // namespace polyrail
