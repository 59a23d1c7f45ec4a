// The .topo text format: a topology as a file that people write and programs print.
//
//   # two hosts, two unlike rails each
//   host h[0-1] packages 1 numa 2 cores 16 copy 9GBps
//     gpu gpu[0-3] pci 0000:[10-13]:00.0 numa 0
//     rail eth0 tcp plane 0 device eth0 address 10.0.0.{1-2} rate 1gbit latency 25us measured
//     rail shm shm plane 1 curve 0:0.3us 64KiB:12us 1MiB:150us message 0.1us
//   ranks 0*4 1*4          # the host of each rank; or "ranks each 4"
//   epoch 7
//
// Order: hosts, each followed by what belongs to it; ranks after the hosts they name. What is left
// out is not known. "[a-b]" in a name repeats its line, and steps wherever else it stands in that
// line; "{a-b}" steps with the host. topology/lines.hpp has the rules for words, quotes and
// comments, topology/units.hpp the units.
#pragma once

#include <string>
#include <string_view>

#include <polyrail/status.hpp>

#include "topology/topology.hpp"

namespace polyrail {

// What a hostile text may cost: the parser gives up with an error beyond these.
inline constexpr std::size_t kTopologyBytesMax = std::size_t{64} << 20;
inline constexpr std::size_t kTopologyNameBytesMax = 255;
inline constexpr int kTopologyRanksMax = 1 << 20;
inline constexpr int kTopologyCountMax = 1 << 20;  // cores, planes, ...

// Prints every field, so that parse_topology gives back an equal value. Precondition: the topology
// is one that the parser accepts: names and planes unique in their host, curves ascending and
// finite, ranks on hosts that exist, no number beyond its limit.
std::string to_text(const Topology& topology);

// An error begins with "line N: " and says what was expected there.
Result<Topology> parse_topology(std::string_view text);

}  // namespace polyrail
