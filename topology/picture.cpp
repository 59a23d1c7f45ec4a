#include "topology/picture.hpp"

#include <algorithm>
#include <set>

namespace polyrail::topo {

namespace {

constexpr std::size_t kHostsMax = 32;
constexpr std::size_t kPlanesMax = 32;

constexpr double kMargin = 24;
constexpr double kTitleHeight = 34;
constexpr double kLegendHeight = 56;
constexpr double kGap = 8;       // between boxes
constexpr double kPadding = 10;  // inside a host or a NUMA node
constexpr double kHostGap = 28;
constexpr double kRowGap = 36;  // between hosts and bands
constexpr double kBandHeight = 32;
constexpr double kBandGap = 10;
constexpr double kLocalHeight = 38;
constexpr double kGpuWidthMin = 70;
constexpr double kGpuWidthMax = 150;
constexpr double kGpuHeight = 36;
constexpr std::size_t kGpuColumns = 4;
constexpr double kNicWidthMin = 62;
constexpr double kNicWidthMax = 136;
constexpr double kHeaderWidthMax = 320;
constexpr double kLabelWidthMax = 240;

// Heights of the layers of the hosts in a row, so that their boxes line up.
struct Layers {
  double header = 0;
  double locals = 0;
  double label = 0;  // of NUMA nodes
  double gpus = 0;
  double nics = 0;

  double node() const { return label + gpus + nics + (gpus + nics + label > 0 ? kPadding : 0); }
  double host() const { return header + locals + node() + 2 * kPadding; }
};

double nic_width(const Rail& rail) {
  const std::vector<std::string> lines = nic_lines(rail);
  double width = kNicWidthMin;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    width = std::max(width, text_width(lines[i], i == 0 ? kSmallBoldFont : kSmallFont) + 12);
  }
  return std::min(width, kNicWidthMax);
}

double nics_width(const NodePicture& node) {
  double width = 0;
  for (const NicPicture& nic : node.nics) width += nic_width(*nic.rail) + kGap;
  return std::max(0.0, width - kGap);
}

// Of each GPU of the node, so that they stand in columns.
double gpu_width(const NodePicture& node) {
  double width = kGpuWidthMin;
  for (const GpuPicture& gpu : node.gpus) {
    width = std::max(width, text_width(printable(gpu.gpu->name), kSmallFont) + 12);
  }
  return std::min(width, kGpuWidthMax);
}

double gpus_width(const NodePicture& node) {
  const std::size_t columns = std::min(node.gpus.size(), kGpuColumns);
  return std::max(0.0, static_cast<double>(columns) * (gpu_width(node) + kGap) - kGap);
}

double node_width(const NodePicture& node) {
  const double label_width = text_width(node.label, kSmallFont);
  return std::max({nics_width(node), gpus_width(node), label_width, 40.0}) + 2 * kPadding;
}

double nodes_width(const HostPicture& host) {
  double width = 0;
  for (const NodePicture& node : host.nodes) width += node_width(node) + kGap;
  return std::max(0.0, width - kGap);
}

double host_width(const HostPicture& host) {
  double text = 0;
  for (std::size_t i = 0; i < host.header.size(); ++i) {
    text = std::max(text, text_width(host.header[i], i == 0 ? kNameFont : kSmallFont));
  }
  for (const LocalPicture& local : host.locals) {
    text = std::max(text, text_width(local_text(*local.rail), kSmallFont));
  }
  return std::max({nodes_width(host), std::min(text, kHeaderWidthMax), 110.0}) + 2 * kPadding;
}

Layers layers_of(const HostPicture& host) {
  Layers layers;
  layers.header = kHeaderLine + static_cast<double>(host.header.size() - 1) * kSmallLine + kGap;
  layers.locals = static_cast<double>(host.locals.size()) * kLocalHeight;
  for (const NodePicture& node : host.nodes) {
    const std::size_t gpu_rows = (node.gpus.size() + kGpuColumns - 1) / kGpuColumns;
    layers.gpus = std::max(layers.gpus, static_cast<double>(gpu_rows) * (kGpuHeight + kGap));
    if (!node.label.empty()) layers.label = kSmallLine + kGap;
    for (const NicPicture& nic : node.nics) {
      const double lines = static_cast<double>(nic_lines(*nic.rail).size());
      layers.nics = std::max(layers.nics, lines * kSmallLine + 8);
    }
  }
  return layers;
}

// Places what is in a node whose x is known. Nearest to the bands are the NICs.
void place_node(NodePicture& node, const Layers& layers, bool is_above) {
  const double top = node.box.y;
  const double nics_top = is_above ? node.box.bottom() - kPadding - layers.nics : top + kPadding;
  const double gpus_top = is_above ? top + layers.label : nics_top + layers.nics + kGap;
  double x = node.box.center_x() - nics_width(node) / 2;
  for (NicPicture& nic : node.nics) {
    nic.box = {x, nics_top, nic_width(*nic.rail), layers.nics};
    x += nic.box.width + kGap;
  }
  const double width = gpu_width(node);
  const double gpus_left = node.box.center_x() - gpus_width(node) / 2;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    node.gpus[i].box = {gpus_left + static_cast<double>(i % kGpuColumns) * (width + kGap),
                        gpus_top + static_cast<double>(i / kGpuColumns) * (kGpuHeight + kGap),
                        width, kGpuHeight};
  }
}

// Places everything in a host whose box is known. Above the bands the layers are, from the top,
// header, local rails, nodes; below the bands they are turned round.
void place_host(HostPicture& host, const Layers& layers) {
  const double top = host.box.y + kPadding;
  const double bottom = host.box.bottom() - kPadding;
  const double nodes_top = host.is_above ? bottom - layers.node() : top;
  const double locals_top =
      host.is_above ? top + layers.header : bottom - layers.header - layers.locals + kGap;
  host.header_top = host.is_above ? top : bottom - layers.header + kGap;
  double y = locals_top;
  for (LocalPicture& local : host.locals) {
    local.box = {host.box.x + kPadding, y, host.box.width - 2 * kPadding, kLocalHeight};
    y += kLocalHeight;
  }
  double x = host.box.center_x() - nodes_width(host) / 2;
  for (NodePicture& node : host.nodes) {
    node.box = {x, nodes_top, node_width(node), layers.node()};
    place_node(node, layers, host.is_above);
    x += node.box.width + kGap;
  }
}

// The rails of a plane in words: "tcp, 500 Mbit/s to 1 Gbit/s".
std::string caption_of(const Topology& topology, int plane) {
  std::set<std::string> kinds;
  const Rail* slowest = nullptr;
  const Rail* fastest = nullptr;
  for (const Host& host : topology.hosts) {
    for (const Rail& rail : host.rails) {
      if (rail.plane != plane || is_host_local(rail.kind)) continue;
      kinds.insert(std::string(name(rail.kind)));
      if (rail.curve.is_empty()) continue;
      const double rate = rail.curve.bytes_per_s();
      if (slowest == nullptr || rate < slowest->curve.bytes_per_s()) slowest = &rail;
      if (fastest == nullptr || rate > fastest->curve.bytes_per_s()) fastest = &rail;
    }
  }
  std::string caption;
  for (const std::string& kind : kinds) caption += (caption.empty() ? "" : "/") + kind;
  if (slowest == nullptr) return caption;
  caption += ", " + rate_of(*slowest);
  if (rate_of(*slowest) != rate_of(*fastest)) caption += " to " + rate_of(*fastest);
  return caption;
}

std::vector<PlanePicture> planes_of(const Topology& topology) {
  std::set<int> numbers;
  for (const Host& host : topology.hosts) {
    for (const Rail& rail : host.rails) {
      if (rail.plane >= 0 && !is_host_local(rail.kind)) numbers.insert(rail.plane);
    }
  }
  std::vector<PlanePicture> planes;
  for (const int number : numbers) {
    if (planes.size() < kPlanesMax) {
      planes.push_back({number, {}, {}, caption_of(topology, number)});
    }
  }
  return planes;
}

// Places the hosts from `begin` to `end` side by side; returns the right edge.
double place_row(std::vector<HostPicture>& hosts, std::size_t begin, std::size_t end, double left,
                 double top, bool is_above, double& height) {
  Layers layers;
  for (std::size_t i = begin; i < end; ++i) {
    const Layers own = layers_of(hosts[i]);
    layers = {std::max(layers.header, own.header), std::max(layers.locals, own.locals),
              std::max(layers.label, own.label), std::max(layers.gpus, own.gpus),
              std::max(layers.nics, own.nics)};
  }
  height = layers.host();
  double x = left;
  for (std::size_t i = begin; i < end; ++i) {
    HostPicture& host = hosts[i];
    host.is_above = is_above;
    host.box = {x, top, host_width(host), height};
    place_host(host, layers);
    x += host.box.width + kHostGap;
  }
  return std::max(left, x - kHostGap);
}

}  // namespace

const PlanePicture* Picture::plane(int number) const {
  for (const PlanePicture& candidate : planes) {
    if (candidate.plane == number) return &candidate;
  }
  return nullptr;
}

Picture lay_out(const Topology& topology) {
  Picture picture;
  picture.title =
      counted(topology.hosts.size(), "host") + ", " + counted(topology.rank_hosts.size(), "rank");
  picture.planes = planes_of(topology);
  const std::vector<HostGroup> groups = group_hosts(topology, topology.hosts.size() > 16);
  const std::vector<std::vector<int>> ranks = ranks_by_host(topology);
  for (const HostGroup& group : groups) {
    if (picture.hosts.size() < kHostsMax)
      picture.hosts.push_back(content_of(topology, group, ranks_of(ranks, group)));
  }
  const std::size_t host_count = picture.hosts.size();
  if (groups.size() > host_count) {
    picture.title += " (the first " + std::to_string(host_count) + " drawn)";
  }

  double label_width = 0;
  for (const PlanePicture& plane : picture.planes) {
    label_width =
        std::max({label_width, text_width(plane.caption, kSmallFont) + 2 * kPadding, 90.0});
  }
  label_width = std::min(label_width, kLabelWidthMax);
  const double left = kMargin + (label_width > 0 ? label_width + kGap : 0);
  double y = kMargin + kTitleHeight;
  double height = 0;
  const std::size_t above_count = host_count > 4 ? (host_count + 1) / 2 : host_count;
  double right = place_row(picture.hosts, 0, above_count, left, y, true, height);
  y += above_count > 0 ? height : 0;
  if (!picture.planes.empty()) {
    y += kRowGap;
    for (PlanePicture& plane : picture.planes) {
      plane.label = {kMargin, y, label_width, kBandHeight};
      plane.band = {kMargin, y, 0, kBandHeight};
      y += kBandHeight + kBandGap;
    }
    y += kRowGap - kBandGap;
  }
  if (above_count < host_count) {
    if (picture.planes.empty()) y += kRowGap;
    right =
        std::max(right, place_row(picture.hosts, above_count, host_count, left, y, false, height));
    y += height + kHostGap;
  } else if (picture.planes.empty()) {
    y += kHostGap;
  }
  picture.legend_top = y;
  picture.width = std::max(right, 640.0) + kMargin;
  for (PlanePicture& plane : picture.planes) plane.band.width = picture.width - 2 * kMargin;
  picture.height = y + kLegendHeight + kMargin / 2;
  return picture;
}

}  // namespace polyrail::topo
