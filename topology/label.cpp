#include "topology/label.hpp"

#include <algorithm>
#include <cmath>

#include "topology/units.hpp"

namespace polyrail::topo {

namespace {

// Length of the UTF-8 character that begins the text; 0 if none does.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF.
  if ((byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f) ||
      (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  // U+0080..U+009F are control characters; U+FFFE and U+FFFF are no characters.
  if (length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0) return 0;
  if (length == 3 && byte(0) == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe) return 0;
  return length;
}

bool is_near(double a, double b) {
  return a == b || std::abs(a - b) <= 0.05 * std::max(std::abs(a), std::abs(b));
}

bool is_alike(const Rail& a, const Rail& b) {
  return a.kind == b.kind && a.plane == b.plane && a.numa == b.numa &&
         a.provenance == b.provenance && is_near(a.curve.bytes_per_s(), b.curve.bytes_per_s());
}

bool is_alike(const Host& a, const Host& b) {
  const auto same_gpu = [](const Gpu& x, const Gpu& y) { return x.numa == y.numa; };
  const auto same_rail = [](const Rail& x, const Rail& y) { return is_alike(x, y); };
  return a.package_count == b.package_count && a.numa_count == b.numa_count &&
         a.core_count == b.core_count &&
         std::equal(a.gpus.begin(), a.gpus.end(), b.gpus.begin(), b.gpus.end(), same_gpu) &&
         std::equal(a.rails.begin(), a.rails.end(), b.rails.begin(), b.rails.end(), same_rail);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 0 || first < ' ' || first == 0x7f) {
      result += '?';
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string shortened(std::string_view text, std::size_t characters_max) {
  if (character_count(text) <= characters_max) return std::string(text);
  if (characters_max <= 3) return std::string(characters_max, '.');
  std::size_t end = 0;
  for (std::size_t kept = 0; kept < characters_max - 3; ++kept) {
    end += std::max<std::size_t>(utf8_length(text.substr(end)), 1);
  }
  return std::string(text.substr(0, end)) + "...";
}

std::string counted(std::size_t count, const std::string& singular) {
  return std::to_string(count) + " " + singular + (count == 1 ? "" : "s");
}

std::string ranges(const std::vector<int>& ascending) {
  std::string text;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t end = i + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += std::to_string(ascending[i]);
    if (end - i > 1) text += "-" + std::to_string(ascending[end - 1]);
    i = end;
  }
  return text;
}

std::string host_facts(const Host& host) {
  std::string text;
  const auto add = [&](int count, const char* singular) {
    if (count <= 0) return;
    if (!text.empty()) text += ", ";
    text += counted(static_cast<std::size_t>(count), singular);
  };
  add(host.package_count, "package");
  add(host.numa_count, "NUMA node");
  add(host.core_count, "core");
  return text;
}

std::string rate_of(const Rail& rail) {
  return readable_rate(rail.curve.bytes_per_s(),
                       is_host_local(rail.kind) ? RateStyle::kBytes : RateStyle::kBits);
}

std::string latency_of(const Rail& rail) {
  return rail.curve.is_empty() ? "-" : readable_time(rail.curve.latency_us());
}

std::vector<HostGroup> group_hosts(const Topology& topology, bool merges_alike) {
  const std::vector<std::vector<int>> ranks = ranks_by_host(topology);
  std::vector<HostGroup> groups;
  for (std::size_t h = 0; h < topology.hosts.size(); ++h) {
    if (merges_alike && h > 0) {
      HostGroup& last = groups.back();
      if (ranks[h].size() == ranks[last.first].size() &&
          is_alike(topology.hosts[h], topology.hosts[last.first])) {
        ++last.count;
        continue;
      }
    }
    groups.push_back({h, 1});
  }
  return groups;
}

std::vector<std::vector<int>> ranks_by_host(const Topology& topology) {
  std::vector<std::vector<int>> ranks(topology.hosts.size());
  for (int rank = 0; rank < topology.rank_count(); ++rank) {
    ranks[static_cast<std::size_t>(topology.rank_hosts[static_cast<std::size_t>(rank)])].push_back(
        rank);
  }
  return ranks;
}

std::vector<int> ranks_of(const std::vector<std::vector<int>>& by_host, const HostGroup& group) {
  std::vector<int> ranks;
  for (std::size_t h = group.first; h < group.first + group.count; ++h) {
    ranks.insert(ranks.end(), by_host[h].begin(), by_host[h].end());
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace polyrail::topo
