// What the tree and the picture have in common: texts for people, and which hosts look alike.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/topology.hpp"

namespace polyrail::topo {

// Valid UTF-8 without control characters: what is neither becomes "?".
std::string printable(std::string_view text);
// Characters of valid UTF-8.
std::size_t character_count(std::string_view text);
// At most so many characters; a longer text ends in "...".
std::string shortened(std::string_view text, std::size_t characters_max);

// "1 host", "3 hosts"
std::string counted(std::size_t count, const std::string& singular);
// "0-3, 8"
std::string ranges(const std::vector<int>& ascending);
// "2 packages, 4 NUMA nodes, 64 cores", as far as known.
std::string host_facts(const Host& host);
// "2.5 Gbit/s" or "10 GB/s", "-" if not known.
std::string rate_of(const Rail& rail);
std::string latency_of(const Rail& rail);

// Hosts first .. first + count - 1 that are shown as one.
struct HostGroup {
  std::size_t first = 0;
  std::size_t count = 1;
};
// Each host by itself, or neighbours that are alike together: equal but for names, devices,
// addresses and a few per cent of rate.
std::vector<HostGroup> group_hosts(const Topology& topology, bool merges_alike);
// The ranks of each host, ascending; and those of the hosts of a group.
std::vector<std::vector<int>> ranks_by_host(const Topology& topology);
std::vector<int> ranks_of(const std::vector<std::vector<int>>& by_host, const HostGroup& group);

}  // namespace polyrail::topo
