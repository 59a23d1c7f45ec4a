// The topology as a tree for the terminal.
#include <algorithm>
#include <array>

#include "topology/label.hpp"
#include "topology/render.hpp"
#include "topology/units.hpp"

namespace polyrail {

namespace {

constexpr std::size_t kColumns = 100;

// Columns of a rail: name, kind, plane, rate, latency, provenance, place.
using Row = std::array<std::string, 7>;
constexpr std::array<std::size_t, 7> kWidthsMax = {24, 8, 10, 11, 7, 8, 100};

struct Item {
  int numa = -1;
  bool is_rail = false;
  std::string text;  // of what is not a rail
  Row row;
};

std::string place_text(const std::string& device, const std::string& address,
                       const std::string& pci, const std::string& name) {
  std::string text;
  for (const std::string& part : {device == name ? std::string() : device, address, pci}) {
    if (part.empty()) continue;
    if (!text.empty()) text += " ";
    text += topo::printable(part);
  }
  return text;
}

Item rail_item(const Rail& rail) {
  const std::string plane = rail.plane < 0 ? "plane ?" : "plane " + std::to_string(rail.plane);
  const std::string how = rail.curve.is_empty() ? "" : std::string(name(rail.provenance));
  return {
      rail.numa,
      true,
      "",
      {topo::printable(rail.name), std::string(name(rail.kind)), plane, topo::rate_of(rail),
       topo::latency_of(rail), how, place_text(rail.device, rail.address, rail.pci, rail.name)}};
}

class Tree {
 public:
  void line(const std::string& prefix, const std::string& text) {
    const std::size_t used = topo::character_count(prefix);
    text_ += prefix + topo::shortened(text, kColumns - used) + "\n";
  }
  std::string take() { return std::move(text_); }

  // Everything below a host: what sits on a NUMA node below that node, the rest behind.
  void items(const std::string& prefix, std::vector<Item> items) {
    align(items);
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
      return static_cast<unsigned>(a.numa) < static_cast<unsigned>(b.numa);  // -1 last
    });
    for (std::size_t begin = 0; begin < items.size();) {
      const int node = items[begin].numa;
      std::size_t end = begin;
      while (end < items.size() && items[end].numa == node) ++end;
      const bool is_last = end == items.size();
      std::string inner = prefix;
      if (node >= 0) {
        line(prefix + (is_last ? "└─ " : "├─ "), "NUMA node " + std::to_string(node));
        inner += is_last ? "   " : "│  ";
      }
      for (; begin < end; ++begin) {
        line(inner + (begin + 1 == end ? "└─ " : "├─ "), items[begin].text);
      }
    }
  }

 private:
  static void align(std::vector<Item>& items) {
    std::array<std::size_t, 7> widths{};
    for (Item& item : items) {
      if (!item.is_rail) continue;
      for (std::size_t c = 0; c < widths.size(); ++c) {
        item.row[c] = topo::shortened(item.row[c], kWidthsMax[c]);
        widths[c] = std::max(widths[c], topo::character_count(item.row[c]));
      }
    }
    // Below a node the branch is longer; names make up for it, so that columns stay in line.
    constexpr std::size_t kBranch = 3;
    const bool has_nodes =
        std::any_of(items.begin(), items.end(), [](const Item& item) { return item.numa >= 0; });
    for (Item& item : items) {
      if (!item.is_rail) continue;
      for (std::size_t c = 0; c < widths.size(); ++c) {
        const std::size_t spare = c == 0 && has_nodes && item.numa < 0 ? kBranch : 0;
        item.text += item.row[c];
        item.text.append(widths[c] + spare - topo::character_count(item.row[c]) + 2, ' ');
      }
      item.text.erase(item.text.find_last_not_of(' ') + 1);
    }
  }

  std::string text_;
};

std::string host_line(const Topology& topology, const topo::HostGroup& group,
                      const std::vector<int>& ranks) {
  const Host& host = topology.hosts[group.first];
  std::string line = topo::shortened(topo::printable(host.name), 30);
  if (group.count > 1) {
    const Host& last = topology.hosts[group.first + group.count - 1];
    line += " to " + topo::shortened(topo::printable(last.name), 30) + " (" +
            topo::counted(group.count, "host") + " alike)";
  }
  if (!ranks.empty()) {
    line += std::string(ranks.size() == 1 ? ": rank " : ": ranks ") + topo::ranges(ranks);
  }
  const std::string facts = topo::host_facts(host);
  if (!facts.empty()) line += (ranks.empty() ? ": " : "; ") + facts;
  if (host.copy_bytes_per_s > 0) {
    line += ", copies " + readable_rate(host.copy_bytes_per_s, RateStyle::kBytes);
  }
  return line;
}

}  // namespace

std::string render_tree(const Topology& topology) {
  Tree tree;
  std::string head = topo::counted(topology.hosts.size(), "host") + ", " +
                     topo::counted(topology.rank_hosts.size(), "rank") + ", " +
                     topo::counted(static_cast<std::size_t>(topology.plane_count()), "plane");
  if (topology.epoch != 0) head += ", epoch " + std::to_string(topology.epoch);
  tree.line("", head);
  const auto ranks = topo::ranks_by_host(topology);
  const auto groups = topo::group_hosts(topology, topology.hosts.size() > 4);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const bool is_last = g + 1 == groups.size();
    const Host& host = topology.hosts[groups[g].first];
    tree.line(is_last ? "└─ " : "├─ ",
              host_line(topology, groups[g], topo::ranks_of(ranks, groups[g])));
    std::vector<Item> items;
    for (const Gpu& gpu : host.gpus) {
      const std::string place = gpu.pci.empty() ? "" : "  " + topo::printable(gpu.pci);
      items.push_back({gpu.numa, false, "GPU " + topo::printable(gpu.name) + place, {}});
    }
    for (const Rail& rail : host.rails) items.push_back(rail_item(rail));
    tree.items(is_last ? "   " : "│  ", std::move(items));
  }
  return tree.take();
}

}  // namespace polyrail
