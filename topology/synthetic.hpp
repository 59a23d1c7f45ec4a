// Topologies from one line, for tests, examples and "what if" questions.
//
//   2 hosts, rails 1gbit+2.5gbit+500mbit
//   4 hosts x 2 ranks, shm 10GBps, rails 1gbit 1gbit 25us
//   4 hosts x 8 gpus, 96 cores, 2 numa, cuda_ipc 450GBps, 8 verbs 50GBps 2us, tcp 3GBps
//   4 hosts, rails 400mbit, host 3 rails 200mbit
//
//   topology := COUNT ("host" | "hosts") ["x" COUNT ("ranks" | "gpus")] {"," part}
//   part     := COUNT ("cores" | "numa" | "packages") | [which] rails
//   which    := ("host" | "hosts") NUMBER ["-" NUMBER]
//   rails    := [COUNT] kind RATE {["+"] (RATE | TIME)}
//   kind     := "rails" (the same as tcp) | "tcp" | "ucx" | "verbs" | "shm" | "loopback" |
//   "cuda_ipc"
//
// RATE and TIME as in topology/units.hpp; "rail", "rank", "gpu", "core" mean the same as their
// plurals. One rank per host, or one per GPU, unless ranks are given. A COUNT in front of the kind
// repeats the list of rates. A TIME is the latency of the rates in front of it that have none yet;
// without any, each kind has a usual one. Parts add up; one with `which` replaces the rails of its
// kind on those hosts. Network rails lie on planes 0, 1, ... in the order given, host-local ones
// on the planes behind. The GPUs and the network rails of each kind are spread evenly over the NUMA
// nodes.
#pragma once

#include <string_view>

#include <polyrail/status.hpp>

#include "topology/topology.hpp"

namespace polyrail {

// An error says at which character what was expected. Sizes are bounded as in topology/text.hpp.
Result<Topology> parse_synthetic(std::string_view line);

}  // namespace polyrail
