// Start-up, first half: open the rails, tell each other, connect, number the planes.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "src/base/clock.hpp"
#include "src/base/host_identity.hpp"
#include "src/comm/match.hpp"
#include "src/comm/network.hpp"
#include "src/comm/pump.hpp"
#include "topology/discover.hpp"
#include "transports/builtin.hpp"
#include "transports/fault/fault.hpp"

namespace polyrail {
namespace {

using Json = nlohmann::json;

std::string to_message(const Json& json) {
  const std::vector<std::uint8_t> bytes = Json::to_msgpack(json);
  return std::string(bytes.begin(), bytes.end());
}

std::string to_message(const Announcement& announcement) {
  Json offers = Json::array();
  for (const Offer& offer : announcement.offers) {
    offers.push_back({{"name", offer.rail.name},
                      {"kind", static_cast<int>(offer.rail.kind)},
                      {"device", offer.rail.device},
                      {"printable", offer.rail.address},
                      {"numa", offer.rail.numa},
                      {"pci", offer.rail.pci},
                      {"address", Json::binary(std::vector<std::uint8_t>(offer.address.begin(),
                                                                         offer.address.end()))}});
  }
  return to_message(Json{{"host", announcement.host},
                         {"host_name", announcement.host_name},
                         {"process", announcement.process},
                         {"cores", announcement.core_count},
                         {"numas", announcement.numa_count},
                         {"packages", announcement.package_count},
                         {"offers", std::move(offers)}});
}

Result<Announcement> parse_announcement(const std::string& message, int rank) {
  try {
    const Json json = Json::from_msgpack(message);
    Announcement announcement;
    announcement.host = json.at("host");
    announcement.host_name = json.at("host_name");
    announcement.process = json.at("process");
    announcement.core_count = json.at("cores");
    announcement.numa_count = json.at("numas");
    announcement.package_count = json.at("packages");
    for (const Json& item : json.at("offers")) {
      Offer offer;
      offer.rail.name = item.at("name");
      offer.rail.kind = static_cast<RailKind>(item.at("kind").get<int>());
      offer.rail.device = item.at("device");
      offer.rail.address = item.at("printable");
      offer.rail.numa = item.at("numa");
      offer.rail.pci = item.at("pci");
      const auto& address = item.at("address").get_binary();
      offer.address.assign(address.begin(), address.end());
      announcement.offers.push_back(std::move(offer));
    }
    return announcement;
  } catch (const Json::exception& error) {
    return Status(StatusCode::kInternalError, "the rails that rank " + std::to_string(rank) +
                                                  " announced cannot be read: " + error.what());
  }
}

// Collects which endpoints came up; nothing else is expected during start-up.
class ConnectSink final : public Sink {
 public:
  struct Try {
    int peer = -1;
    int transport = -1;
    int peer_rail = -1;
    Endpoint* endpoint = nullptr;
    bool is_up = false;
    bool is_over = false;
    std::string failure;
  };
  std::vector<Try> tries;

  void on_up(Endpoint& endpoint) override {
    if (Try* attempt = find(endpoint)) attempt->is_up = attempt->is_over = true;
  }
  void on_down(Endpoint& endpoint, const Status& why) override {
    if (Try* attempt = find(endpoint)) {
      attempt->is_up = false;
      attempt->is_over = true;
      attempt->failure = why.message();
    }
  }
  Landing on_slice(Endpoint&, const SliceHeader&) override { return {}; }
  void on_landed(Endpoint&, const SliceHeader&) override {}
  void on_bytes(Endpoint&, const SliceHeader&, std::uint32_t, std::span<const std::byte>) override {
  }
  void on_acknowledged(Endpoint&, const Acknowledgement&) override {}
  void on_control(Endpoint&, std::span<const std::byte>) override {}

 private:
  Try* find(Endpoint& endpoint) {
    for (Try& attempt : tries) {
      if (attempt.endpoint == &endpoint) return &attempt;
    }
    return nullptr;
  }
};

class Connector {
 public:
  Connector(Bootstrap& bootstrap, const Options& options, Logger logger)
      : bootstrap_(bootstrap),
        options_(options),
        logger_(std::move(logger)),
        rank_(bootstrap.rank()) {}

  Result<Network> run() {
    if (Status status = agree_on_id(); !status.is_ok()) return status;
    if (Status status = open_rails(); !status.is_ok()) return status;
    if (Status status = announce(); !status.is_ok()) return status;
    for (RailKind kind : kinds_) {
      if (Status status = connect_kind(kind); !status.is_ok()) return status;
    }
    if (Status status = require_all_joined(); !status.is_ok()) return status;
    build_topology();
    return std::move(network_);
  }

 private:
  // Rank 0 draws the number that tells this communicator from others of the same key.
  Status agree_on_id() {
    std::random_device random;
    const std::uint64_t drawn = static_cast<std::uint64_t>(random()) << 32 | random();
    Result<std::vector<std::string>> ids =
        bootstrap_.all_gather("choice of the communicator's number", std::to_string(drawn));
    if (!ids.is_ok()) return ids.status();
    communicator_id_ = std::strtoull(ids.value().front().c_str(), nullptr, 10);
    return ok();
  }

  Status open_rails() {
    // Looked at once per process: it does not change, and hwloc is not made for several threads.
    static const HostProbe probe = discover_host();
    self_.core_count = probe.host.core_count;
    self_.numa_count = probe.host.numa_count;
    self_.package_count = probe.host.package_count;
    for (const std::string& warning : probe.warnings) {
      logger_->info("rank {}: {}", rank_, warning);
    }
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    self_.host = host_identity();
    self_.host_name = name;
    self_.process = getpid();

    TransportContext context;
    context.rank = rank_;
    context.rank_count = bootstrap_.rank_count();
    context.key.assign(reinterpret_cast<const char*>(bootstrap_.key().data()),
                       bootstrap_.key().size());
    context.communicator_id = communicator_id_;
    context.connect_timeout_ms = static_cast<int>(options_.start_timeout_ms);

    Result<std::vector<TransportKind>> kinds = transports_named(options_.transports);
    if (!kinds.is_ok()) return kinds.status();
    for (const TransportKind& kind : kinds.value()) {
      Result<std::vector<Rail>> rails = kind.discover(options_);
      if (!rails.is_ok()) return rails.status();
      for (Rail& rail : rails.value()) {
        place_rail(probe, rail);
        Result<std::unique_ptr<Transport>> transport = kind.open(rail, context, options_, logger_);
        if (!transport.is_ok()) {
          logger_->info("rank {}: rail {} left out: {}", rank_, rail.name,
                        transport.status().message());
          continue;
        }
        transport = decorate(std::move(transport).value(), options_);
        if (!transport.is_ok()) return transport.status();
        if (std::find(kinds_.begin(), kinds_.end(), rail.kind) == kinds_.end()) {
          kinds_.push_back(rail.kind);
        }
        self_.offers.push_back({rail, transport.value()->address()});
        network_.transports.push_back(std::move(transport).value());
      }
    }
    return ok();
  }

  Status announce() {
    Result<std::vector<std::string>> messages =
        bootstrap_.all_gather("exchange of rails", to_message(self_));
    if (!messages.is_ok()) return messages.status();
    for (std::size_t rank = 0; rank < messages.value().size(); ++rank) {
      Result<Announcement> announcement =
          parse_announcement(messages.value()[rank], static_cast<int>(rank));
      if (!announcement.is_ok()) return announcement.status();
      ranks_.push_back(std::move(announcement).value());
    }
    is_joined_.resize(ranks_.size(), false);
    // All ranks try the kinds in the same order, also those that only others offer.
    kinds_.clear();
    for (const Announcement& rank : ranks_) {
      for (const Offer& offer : rank.offers) {
        if (std::find(kinds_.begin(), kinds_.end(), offer.rail.kind) == kinds_.end()) {
          kinds_.push_back(offer.rail.kind);
        }
      }
    }
    std::sort(kinds_.begin(), kinds_.end());
    return ok();
  }

  Status connect_kind(RailKind kind) {
    ConnectSink sink;
    for (int peer = 0; peer < static_cast<int>(ranks_.size()); ++peer) {
      if (peer == rank_ || is_joined_[peer]) continue;
      const bool is_lower = rank_ < peer;
      const auto pairs = is_lower ? match_rails(ranks_[rank_], ranks_[peer], kind)
                                  : match_rails(ranks_[peer], ranks_[rank_], kind);
      for (const auto& [a, b] : pairs) {
        if (options_.rails_max > 0 && count_tries(sink, peer) >= options_.rails_max) break;
        ConnectSink::Try attempt;
        attempt.peer = peer;
        attempt.transport = is_lower ? a : b;
        attempt.peer_rail = is_lower ? b : a;
        Result<Endpoint*> endpoint = network_.transports[attempt.transport]->connect(
            peer, ranks_[peer].offers[attempt.peer_rail].address);
        if (endpoint.is_ok()) {
          attempt.endpoint = endpoint.value();
        } else {
          attempt.is_over = true;
          attempt.failure = endpoint.status().message();
        }
        sink.tries.push_back(std::move(attempt));
      }
    }
    const double deadline = now_us() + 1e3 * static_cast<double>(options_.start_timeout_ms) + 100e3;
    Pump(network_.transports).run_until(sink, deadline, [&] {
      return std::all_of(sink.tries.begin(), sink.tries.end(),
                         [](const ConnectSink::Try& attempt) { return attempt.is_over; });
    });
    return agree(kind, sink);
  }

  static std::int64_t count_tries(const ConnectSink& sink, int peer) {
    return std::count_if(sink.tries.begin(), sink.tries.end(),
                         [&](const ConnectSink::Try& attempt) { return attempt.peer == peer; });
  }

  // A rail joins two ranks only if both say so.
  Status agree(RailKind kind, ConnectSink& sink) {
    Json mine = Json::array();
    for (const ConnectSink::Try& attempt : sink.tries) {
      if (attempt.is_up) {
        mine.push_back({attempt.peer, attempt.transport, attempt.peer_rail});
        continue;
      }
      const std::string text = std::string(name(kind)) + " rail " +
                               self_.offers[attempt.transport].rail.name + " to rank " +
                               std::to_string(attempt.peer) + " at " +
                               ranks_[attempt.peer].offers[attempt.peer_rail].rail.address + ": " +
                               (attempt.failure.empty() ? "no answer" : attempt.failure);
      logger_->info("rank {}: {}", rank_, text);
      failures_ += (failures_.empty() ? "" : "; ") + text;
    }
    Result<std::vector<std::string>> messages = bootstrap_.all_gather(
        "connection of " + std::string(name(kind)) + " rails", to_message(mine));
    if (!messages.is_ok()) return messages.status();
    std::vector<Edge> claims;
    try {
      for (std::size_t rank = 0; rank < messages.value().size(); ++rank) {
        for (const Json& row : Json::from_msgpack(messages.value()[rank])) {
          claims.push_back({static_cast<int>(rank), row.at(1), row.at(0), row.at(2)});
        }
      }
    } catch (const Json::exception& error) {
      return {StatusCode::kInternalError,
              std::string("the connections that a rank reported cannot be read: ") + error.what()};
    }
    for (const Edge& claim : claims) {
      if (claim.rank_a > claim.rank_b) continue;
      const bool is_mutual = std::any_of(claims.begin(), claims.end(), [&](const Edge& other) {
        return other.rank_a == claim.rank_b && other.rank_b == claim.rank_a &&
               other.rail_a == claim.rail_b && other.rail_b == claim.rail_a;
      });
      if (!is_mutual) continue;
      edges_.push_back(claim);
      if (claim.rank_a != rank_ && claim.rank_b != rank_) continue;
      const int peer = claim.rank_a == rank_ ? claim.rank_b : claim.rank_a;
      const int rail = claim.rank_a == rank_ ? claim.rail_a : claim.rail_b;
      for (const ConnectSink::Try& attempt : sink.tries) {
        if (attempt.peer != peer || attempt.transport != rail) continue;
        network_.joints.push_back({peer, -1, rail, attempt.endpoint});
        is_joined_[peer] = true;
      }
    }
    return ok();
  }

  Status require_all_joined() {
    std::string mine;
    for (int peer = 0; peer < static_cast<int>(ranks_.size()); ++peer) {
      if (peer == rank_ || is_joined_[peer]) continue;
      mine += (mine.empty() ? "" : ", ") + std::to_string(peer);
    }
    if (!mine.empty()) {
      mine = "rank " + std::to_string(rank_) + " (host " + self_.host_name + ") reaches rank " +
             mine + " over no rail" +
             (failures_.empty() ? std::string("; no pair of their rails fits")
                                : "; tried: " + failures_);
    }
    Result<std::vector<std::string>> reports = bootstrap_.all_gather("check of the network", mine);
    if (!reports.is_ok()) return reports.status();
    for (const std::string& report : reports.value()) {
      if (!report.empty()) return {StatusCode::kSystemError, report};
    }
    return ok();
  }

  void build_topology() {
    const std::vector<std::vector<int>> planes = number_planes(ranks_, edges_);
    for (Joint& joint : network_.joints) joint.plane = planes[rank_][joint.transport];
    Topology& topology = network_.topology;
    std::map<std::string, int> host_index;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const Announcement& from = ranks_[rank];
      const auto [it, is_new] =
          host_index.emplace(from.host, static_cast<int>(topology.hosts.size()));
      if (is_new) {
        Host host;
        host.name = from.host_name;
        host.core_count = from.core_count;
        host.numa_count = from.numa_count;
        host.package_count = from.package_count;
        topology.hosts.push_back(std::move(host));
      }
      topology.rank_hosts.push_back(it->second);
      Host& host = topology.hosts[it->second];
      for (std::size_t rail = 0; rail < from.offers.size(); ++rail) {
        const int plane = planes[rank][rail];
        if (plane < 0) continue;
        const bool is_known = std::any_of(host.rails.begin(), host.rails.end(),
                                          [&](const Rail& other) { return other.plane == plane; });
        if (is_known) continue;
        host.rails.push_back(from.offers[rail].rail);
        host.rails.back().plane = plane;
      }
    }
  }

  Bootstrap& bootstrap_;
  const Options& options_;
  Logger logger_;
  const int rank_;
  std::uint64_t communicator_id_ = 0;
  Announcement self_;
  std::vector<Announcement> ranks_;
  std::vector<RailKind> kinds_;
  std::vector<bool> is_joined_;
  std::vector<Edge> edges_;
  std::string failures_;
  Network network_;
};

}  // namespace

Result<Network> connect(Bootstrap& bootstrap, const Options& options, Logger logger) {
  return Connector(bootstrap, options, std::move(logger)).run();
}

}  // namespace polyrail
