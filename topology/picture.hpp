// Where everything of the SVG picture lies, before it is drawn.
//
// Hosts stand in one row, or in two when there are more than four, with the planes as horizontal
// bands between them. NICs lie at the edge of their host that faces the bands, so that each rail is
// one vertical line that crosses bands but no text.
#pragma once

#include <string>
#include <vector>

#include "topology/label.hpp"
#include "topology/svg.hpp"
#include "topology/topology.hpp"

namespace polyrail::topo {

struct NicPicture {
  const Rail* rail = nullptr;
  Box box;
};

struct GpuPicture {
  const Gpu* gpu = nullptr;
  Box box;
};

// A NUMA node with what sits on it, or (numa -1) what is not known to sit on any.
struct NodePicture {
  int numa = -1;
  std::string label;
  Box box;
  std::vector<GpuPicture> gpus;
  std::vector<NicPicture> nics;
};

// A rail within the host, drawn as a line with its text above it.
struct LocalPicture {
  const Rail* rail = nullptr;
  Box box;
};

struct HostPicture {
  const Host* host = nullptr;
  HostGroup group;
  bool is_above = true;  // the bands; otherwise below
  Box box;
  double header_top = 0;
  std::vector<std::string> header;  // the first line is the name
  std::vector<LocalPicture> locals;
  std::vector<NodePicture> nodes;
};

struct PlanePicture {
  int plane = 0;
  Box band;
  Box label;
  std::string caption;  // "tcp, 1 Gbit/s"
};

// Pointers are into the topology.
struct Picture {
  std::string title;
  double width = 0;
  double height = 0;
  double legend_top = 0;
  std::vector<HostPicture> hosts;
  std::vector<PlanePicture> planes;

  const PlanePicture* plane(int number) const;
};

inline constexpr double kHeaderLine = 16;
inline constexpr double kSmallLine = 14;
inline constexpr Font kNameFont{13, true};
inline constexpr Font kSmallFont{11, false};
inline constexpr Font kSmallBoldFont{11, true};

// The lines inside a NIC's box: name, rate, latency, address, as far as known.
std::vector<std::string> nic_lines(const Rail& rail);
// The text above a rail within the host: "shm 10 GB/s, 500 ns".
std::string local_text(const Rail& rail);

// What the picture shows of a group of hosts with these ranks, without any place.
HostPicture content_of(const Topology& topology, const HostGroup& group,
                       const std::vector<int>& ranks);

Picture lay_out(const Topology& topology);

}  // namespace polyrail::topo
