// What the picture shows of a host. Apart from picture.cpp, which says where.
#include <algorithm>
#include <set>

#include "topology/picture.hpp"

namespace polyrail::topo {

namespace {

// Beyond these a picture helps nobody; what is left out is counted in the host's header.
constexpr std::size_t kNicsMax = 64;
constexpr std::size_t kGpusMax = 64;
constexpr std::size_t kLocalsMax = 8;
constexpr int kEmptyNodesMax = 8;

// Those of the numbers, and the empty nodes too if there are few; last, as -1, the place of what is
// not known to sit on any.
std::vector<NodePicture> nodes_of(const Host& host, std::set<int> numbers) {
  const bool has_unplaced = numbers.erase(-1) > 0;
  // The operating system may number nodes with gaps; then the count says nothing about numbers.
  const bool is_dense = numbers.empty() || *numbers.rbegin() < host.numa_count;
  if (is_dense && host.numa_count > 1 && host.numa_count <= kEmptyNodesMax) {
    for (int i = 0; i < host.numa_count; ++i) numbers.insert(i);
  }
  const bool knows_package =
      is_dense && host.package_count > 1 && host.numa_count % host.package_count == 0;
  std::vector<NodePicture> nodes;
  for (const int number : numbers) {
    NodePicture node;
    node.numa = number;
    node.label = "NUMA " + std::to_string(number);
    if (knows_package) {
      const int nodes_per_package = host.numa_count / host.package_count;
      node.label = "package " + std::to_string(number / nodes_per_package) + ", " + node.label;
    }
    nodes.push_back(std::move(node));
  }
  if (has_unplaced) nodes.emplace_back();
  return nodes;
}

std::vector<std::string> header_of(const Topology& topology, const HostGroup& group,
                                   const std::vector<int>& ranks) {
  const Host& host = topology.hosts[group.first];
  std::vector<std::string> header = {printable(host.name)};
  if (group.count > 1) {
    const Host& last = topology.hosts[group.first + group.count - 1];
    header[0] += " to " + printable(last.name) + " (" + counted(group.count, "host") + ")";
  }
  if (!ranks.empty()) header.push_back((ranks.size() == 1 ? "rank " : "ranks ") + ranges(ranks));
  if (std::string facts = host_facts(host); !facts.empty()) header.push_back(std::move(facts));
  return header;
}

}  // namespace

std::vector<std::string> nic_lines(const Rail& rail) {
  std::vector<std::string> lines = {printable(rail.name)};
  if (!rail.curve.is_empty()) {
    lines.push_back(rate_of(rail));
    lines.push_back(latency_of(rail));
  }
  if (!rail.address.empty()) lines.push_back(printable(rail.address));
  return lines;
}

std::string local_text(const Rail& rail) {
  std::string text = printable(rail.name);
  if (!rail.curve.is_empty()) text += " " + rate_of(rail) + ", " + latency_of(rail);
  return text;
}

HostPicture content_of(const Topology& topology, const HostGroup& group,
                       const std::vector<int>& ranks) {
  HostPicture picture;
  picture.group = group;
  picture.host = &topology.hosts[group.first];
  picture.header = header_of(topology, group, ranks);
  const std::vector<Gpu>& gpus = picture.host->gpus;
  const std::size_t gpu_count = std::min(gpus.size(), kGpusMax);
  std::vector<NicPicture> nics;
  std::set<int> numbers;
  for (std::size_t i = 0; i < gpu_count; ++i) numbers.insert(gpus[i].numa);
  for (const Rail& rail : picture.host->rails) {
    if (is_host_local(rail.kind)) {
      if (picture.locals.size() < kLocalsMax) picture.locals.push_back({&rail, {}});
    } else if (nics.size() < kNicsMax) {
      nics.push_back({&rail, {}});
      numbers.insert(rail.numa);
    }
  }

  picture.nodes = nodes_of(*picture.host, std::move(numbers));
  const auto node_of = [&](int numa) {
    return std::find_if(picture.nodes.begin(), picture.nodes.end(),
                        [&](const NodePicture& node) { return node.numa == numa; });
  };
  for (std::size_t i = 0; i < gpu_count; ++i) {
    node_of(gpus[i].numa)->gpus.push_back({&gpus[i], {}});
  }
  for (const NicPicture& nic : nics) node_of(nic.rail->numa)->nics.push_back(nic);
  const std::size_t left_out =
      picture.host->rails.size() - picture.locals.size() - nics.size() + gpus.size() - gpu_count;
  if (left_out > 0)
    picture.header.push_back("and " + std::to_string(left_out) + " more, not drawn");
  return picture;
}

}  // namespace polyrail::topo
