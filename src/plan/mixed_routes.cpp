// Routes where hosts have unlike sets of rails: a small load balancing of pairs over planes.

#include <algorithm>
#include <limits>
#include <numeric>

#include "src/plan/routes.hpp"

namespace polyrail {
namespace {

class MixedRoutes {
 public:
  MixedRoutes(const Topology& topology, const std::vector<double>& weights, int route_count)
      : topology_(topology), route_count_(route_count) {
    find_hosts(weights);
    find_pairs();
    load_.assign(hosts_.size(), std::vector<double>(topology.plane_count()));
  }

  void balance() {
    for (Pair& pair : pairs_) {
      for (int share = 0; share < route_count_; ++share) place(pair);
    }
    // Who came first did not know what the others would do: take each share back, place it anew.
    constexpr int kPasses = 4;
    for (int pass = 0; pass < kPasses; ++pass) {
      for (Pair& pair : pairs_) {
        for (std::size_t p = 0; p < pair.planes.size(); ++p) {
          for (int share = pair.carried[p]; share > 0; --share) {
            --pair.carried[p];
            load(pair, p, -1);
            place(pair);
          }
        }
      }
    }
  }

  std::vector<Route> routes(const Route& within) const {
    std::vector<Route> routes(route_count_, within);
    const int n = topology_.rank_count();
    for (const Pair& pair : pairs_) {
      std::size_t route = 0;
      for (std::size_t p = 0; p < pair.planes.size(); ++p) {
        for (int share = 0; share < pair.carried[p]; ++share, ++route) {
          for (const int a : hosts_[pair.a].ranks) {
            for (const int b : hosts_[pair.b].ranks) {
              routes[route].planes[a * n + b] = pair.planes[p];
              routes[route].planes[b * n + a] = pair.planes[p];
            }
          }
        }
      }
    }
    return routes;
  }

 private:
  struct HostPart {
    std::vector<int> ranks;
    double weight = 0;
  };
  struct Pair {
    int a, b;                  // places in hosts_
    std::vector<int> planes;   // those they have in common
    std::vector<int> carried;  // by place in `planes`: how many shares
  };

  void find_hosts(const std::vector<double>& weights) {
    std::vector<int> places(topology_.hosts.size(), -1);
    for (int rank = 0; rank < topology_.rank_count(); ++rank) {
      int& place = places[topology_.rank_hosts[rank]];
      if (place < 0) {
        place = static_cast<int>(hosts_.size());
        hosts_.emplace_back();
      }
      hosts_[place].ranks.push_back(rank);
      hosts_[place].weight += weights.empty() ? 1.0 / topology_.rank_count() : weights[rank];
    }
  }

  void find_pairs() {
    for (int a = 0; a < static_cast<int>(hosts_.size()); ++a) {
      for (int b = a + 1; b < static_cast<int>(hosts_.size()); ++b) {
        Pair pair{a, b, {}, {}};
        for (int plane = 0; plane < topology_.plane_count(); ++plane) {
          if (topology_.joins(plane, hosts_[a].ranks.front(), hosts_[b].ranks.front())) {
            pair.planes.push_back(plane);
          }
        }
        pair.carried.resize(pair.planes.size());
        pairs_.push_back(std::move(pair));
      }
    }
    // Who has no choice comes first.
    std::stable_sort(pairs_.begin(), pairs_.end(), [](const Pair& x, const Pair& y) {
      return x.planes.size() < y.planes.size();
    });
  }

  // A host sends another its contribution to that one's part, and the result of its own.
  void load(const Pair& pair, std::size_t p, double sign) {
    const double bytes = hosts_[pair.a].weight + hosts_[pair.b].weight;
    for (const int host : {pair.a, pair.b}) {
      const Rail* rail = topology_.rail(hosts_[host].ranks.front(), pair.planes[p]);
      load_[host][pair.planes[p]] += sign * bytes / RailCost(*rail).bytes_per_s();
    }
  }

  // Puts one more share of the pair where its two rails then have least to do.
  void place(Pair& pair) {
    std::size_t best = 0;
    double least = 0;
    for (std::size_t p = 0; p < pair.planes.size(); ++p) {
      load(pair, p, 1);
      const double most = std::max(load_[pair.a][pair.planes[p]], load_[pair.b][pair.planes[p]]);
      load(pair, p, -1);
      if (p > 0 && most >= least) continue;
      best = p;
      least = most;
    }
    load(pair, best, 1);
    ++pair.carried[best];
  }

  const Topology& topology_;
  int route_count_;
  std::vector<HostPart> hosts_;
  std::vector<Pair> pairs_;
  std::vector<std::vector<double>> load_;  // [host][plane]: time for what it has to send
};

}  // namespace

double pooling_gain(const Topology& topology) {
  std::vector<int> ranks;  // one for each host
  std::vector<bool> is_seen(topology.hosts.size(), false);
  for (int rank = 0; rank < topology.rank_count(); ++rank) {
    if (!is_seen[topology.rank_hosts[rank]]) ranks.push_back(rank);
    is_seen[topology.rank_hosts[rank]] = true;
  }
  // The limit of hosts with these rates, as in limit_us().
  const auto reachable = [](const std::vector<double>& rates) {
    const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
    return std::min(*std::min_element(rates.begin(), rates.end()),
                    sum / (2.0 * static_cast<double>(rates.size() - 1)));
  };
  std::vector<double> pooled(ranks.size());
  double apart = 0;
  for (int plane = 0; plane < topology.plane_count(); ++plane) {
    std::vector<double> rates(ranks.size());
    for (std::size_t a = 0; a < ranks.size(); ++a) {
      for (std::size_t b = 0; b < ranks.size() && rates[a] == 0; ++b) {
        if (a == b || !topology.joins(plane, ranks[a], ranks[b])) continue;
        rates[a] = RailCost(*topology.rail(ranks[a], plane)).bytes_per_s();
      }
      pooled[a] += rates[a];
    }
    apart += reachable(rates);
  }
  return apart > 0 ? reachable(pooled) / apart : std::numeric_limits<double>::infinity();
}

std::vector<Route> mixed_routes(const Topology& topology, const Route& within,
                                const std::vector<double>& weights, int route_count) {
  MixedRoutes mixed(topology, weights, route_count);
  mixed.balance();
  return mixed.routes(within);
}

}  // namespace polyrail
