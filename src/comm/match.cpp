#include "src/comm/match.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace polyrail {
namespace {

// Bytes of a printable address, without scope; empty if it is none.
std::vector<std::uint8_t> address_bytes(const std::string& text) {
  const std::string plain = text.substr(0, text.find('%'));
  std::vector<std::uint8_t> bytes(16);
  if (inet_pton(AF_INET6, plain.c_str(), bytes.data()) == 1) return bytes;
  bytes.resize(4);
  if (inet_pton(AF_INET, plain.c_str(), bytes.data()) == 1) return bytes;
  return {};
}

// Length of the common prefix in bits; -1 for different families.
int common_bits(const std::string& a, const std::string& b) {
  const std::vector<std::uint8_t> left = address_bytes(a);
  const std::vector<std::uint8_t> right = address_bytes(b);
  if (left.empty() || left.size() != right.size()) return -1;
  int bits = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const int difference = left[i] ^ right[i];
    if (difference == 0) {
      bits += 8;
      continue;
    }
    for (int mask = 0x80; (difference & mask) == 0; mask >>= 1) ++bits;
    break;
  }
  return bits;
}

bool is_lo(const Rail& rail) {
  return rail.device == "lo";
}

struct Candidate {
  int bits;
  int order_sum;
  int a;
  int b;
};

}  // namespace

std::vector<std::pair<int, int>> match_rails(const Announcement& a, const Announcement& b,
                                             RailKind kind) {
  const bool is_same_host = a.host == b.host;
  const bool is_same_process = is_same_host && a.process == b.process;
  std::vector<std::pair<int, int>> pairs;
  if (is_host_local(kind)) {
    if (!is_same_host || (kind == RailKind::kLoopback && !is_same_process)) return pairs;
    for (std::size_t i = 0; i < a.offers.size(); ++i) {
      for (std::size_t j = 0; j < b.offers.size(); ++j) {
        const Rail& left = a.offers[i].rail;
        const Rail& right = b.offers[j].rail;
        if (left.kind == kind && right.kind == kind && left.name == right.name) {
          pairs.emplace_back(static_cast<int>(i), static_cast<int>(j));
        }
      }
    }
    return pairs;
  }
  const auto has_lo = [&](const Announcement& rank) {
    return std::any_of(rank.offers.begin(), rank.offers.end(), [&](const Offer& offer) {
      return offer.rail.kind == kind && is_lo(offer.rail);
    });
  };
  const bool wants_lo = is_same_host && has_lo(a) && has_lo(b);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < a.offers.size(); ++i) {
    for (std::size_t j = 0; j < b.offers.size(); ++j) {
      const Rail& left = a.offers[i].rail;
      const Rail& right = b.offers[j].rail;
      if (left.kind != kind || right.kind != kind) continue;
      if (is_lo(left) != wants_lo || is_lo(right) != wants_lo) continue;
      const int bits = common_bits(left.address, right.address);
      if (bits < 0 && !left.address.empty()) continue;
      candidates.push_back(
          {bits, static_cast<int>(i + j), static_cast<int>(i), static_cast<int>(j)});
    }
  }
  // The order must not depend on which rank is a: ties go by the sum, then by the smaller index.
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& x, const Candidate& y) {
    if (x.bits != y.bits) return x.bits > y.bits;
    if (x.order_sum != y.order_sum) return x.order_sum < y.order_sum;
    const auto spread = [](const Candidate& c) { return std::abs(c.a - c.b); };
    if (spread(x) != spread(y)) return spread(x) < spread(y);
    return x.a < y.a;
  });
  std::set<int> used_a;
  std::set<int> used_b;
  for (const Candidate& candidate : candidates) {
    if (used_a.contains(candidate.a) || used_b.contains(candidate.b)) continue;
    used_a.insert(candidate.a);
    used_b.insert(candidate.b);
    pairs.emplace_back(candidate.a, candidate.b);
  }
  return pairs;
}

std::vector<std::vector<int>> number_planes(const std::vector<Announcement>& ranks,
                                            const std::vector<Edge>& edges) {
  // Union-find over all rails; a set also knows its ranks.
  std::vector<std::vector<int>> index(ranks.size());
  std::vector<std::set<int>> members;
  std::vector<int> parent;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::size_t rail = 0; rail < ranks[rank].offers.size(); ++rail) {
      index[rank].push_back(static_cast<int>(parent.size()));
      parent.push_back(static_cast<int>(parent.size()));
      members.push_back({static_cast<int>(rank)});
    }
  }
  const auto find = [&](int i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  std::vector<bool> is_joined(parent.size(), false);
  for (const Edge& edge : edges) {
    const int left = index[edge.rank_a][edge.rail_a];
    const int right = index[edge.rank_b][edge.rail_b];
    is_joined[left] = is_joined[right] = true;
    if (is_host_local(ranks[edge.rank_a].offers[edge.rail_a].rail.kind)) continue;
    const int a = find(left);
    const int b = find(right);
    if (a == b) continue;
    std::vector<int> both;
    std::set_intersection(members[a].begin(), members[a].end(), members[b].begin(),
                          members[b].end(), std::back_inserter(both));
    if (!both.empty()) continue;  // would put two rails of one rank on a plane
    parent[std::max(a, b)] = std::min(a, b);
    members[std::min(a, b)].insert(members[std::max(a, b)].begin(), members[std::max(a, b)].end());
  }
  std::vector<std::vector<int>> planes(ranks.size());
  std::map<std::string, int> numbers;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::size_t rail = 0; rail < ranks[rank].offers.size(); ++rail) {
      const int node = index[rank][rail];
      if (!is_joined[node]) {
        planes[rank].push_back(-1);
        continue;
      }
      const Rail& value = ranks[rank].offers[rail].rail;
      const std::string key =
          is_host_local(value.kind) ? "local " + value.name : "set " + std::to_string(find(node));
      const auto [it, is_new] = numbers.emplace(key, static_cast<int>(numbers.size()));
      planes[rank].push_back(it->second);
    }
  }
  return planes;
}

}  // namespace polyrail
