#include "topology/synthetic.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "topology/label.hpp"
#include "topology/text.hpp"
#include "topology/units.hpp"

namespace polyrail {

namespace {

constexpr std::uint32_t kHostsMax = 65536;
constexpr std::uint32_t kRailsPerHostMax = 4096;
constexpr std::size_t kNameBytes = 16;  // more than any name that finish() gives

// Words and punctuation of the line, read one after the other; `expected` is for the message.
class Words {
 public:
  explicit Words(std::string_view line) : line_(line) { advance(); }

  std::string_view word() const { return word_; }  // "" at the end
  bool is_at_end() const { return word_.empty(); }
  void advance() {
    constexpr std::string_view kSpace = " \t\r\n";
    begin_ = std::min(line_.find_first_not_of(kSpace, begin_ + word_.size()), line_.size());
    const std::size_t end = std::min(line_.find_first_of(" \t\r\n,+", begin_), line_.size());
    word_ = line_.substr(
        begin_, end == begin_ ? std::min<std::size_t>(1, line_.size() - begin_) : end - begin_);
  }
  bool take(std::string_view singular, std::string_view plural = "") {
    if (is_at_end() || (word_ != singular && word_ != plural)) return false;
    advance();
    return true;
  }
  std::optional<std::uint32_t> take_count(std::uint32_t min, std::uint32_t max) {
    std::uint32_t count = 0;
    const char* const end = word_.data() + word_.size();
    const auto [rest, error] = std::from_chars(word_.data(), end, count);
    if (error != std::errc() || rest != end || count < min || count > max) return std::nullopt;
    advance();
    return count;
  }
  Status expected(const std::string& what) const {
    constexpr std::size_t kShownMax = 40;
    const std::string found =
        is_at_end() ? "the end" : "'" + topo::printable(word_.substr(0, kShownMax)) + "'";
    return {StatusCode::kInvalidArgument, "synthetic topology, character " +
                                              std::to_string(begin_ + 1) + ": expected " + what +
                                              ", found " + found};
  }

 private:
  std::string_view line_;
  std::size_t begin_ = 0;
  std::string_view word_;
};

struct HostRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

class Builder {
 public:
  explicit Builder(std::string_view line) : words_(line) {}

  Result<Topology> build() {
    Status status = read_head();
    while (status.is_ok() && !words_.is_at_end()) {
      status = words_.take(",") ? read_part() : words_.expected("',' or the end");
    }
    if (!status.is_ok()) return status;
    finish();
    return std::move(topology_);
  }

 private:
  // Until finish() a rail's name is empty and its plane -1.
  std::vector<Host>& hosts() { return topology_.hosts; }

  Status read_head() {
    const auto host_count = words_.take_count(1, kHostsMax);
    if (!host_count) return words_.expected("a number of hosts from 1 to 65536");
    if (!words_.take("host", "hosts")) return words_.expected("'hosts'");
    hosts().resize(*host_count);
    cost_bytes_ = *host_count * (sizeof(Host) + kNameBytes);
    std::uint32_t rank_count = 1;
    if (words_.take("x")) {
      const std::uint32_t max = kTopologyRanksMax / *host_count;
      const auto count = words_.take_count(1, max);
      if (!count) {
        return words_.expected("a number of ranks or GPUs per host from 1 to " +
                               std::to_string(max));
      }
      rank_count = *count;
      if (words_.take("gpu", "gpus")) {
        cost_bytes_ += std::size_t{*host_count} * rank_count * (sizeof(Gpu) + kNameBytes);
        if (cost_bytes_ > kTopologyBytesMax) return words_.expected("fewer GPUs in all");
        for (Host& host : hosts()) host.gpus.resize(rank_count);
      } else if (!words_.take("rank", "ranks")) {
        return words_.expected("'ranks' or 'gpus'");
      }
    }
    for (std::uint32_t h = 0; h < *host_count; ++h) {
      topology_.rank_hosts.insert(topology_.rank_hosts.end(), rank_count, static_cast<int>(h));
    }
    return ok();
  }

  Status read_part() {
    if (words_.word() == "host" || words_.word() == "hosts") {
      words_.advance();
      return read_rails_of_some();
    }
    const auto count = words_.take_count(1, kTopologyCountMax);
    int Host::*field = nullptr;
    if (words_.word() == "core" || words_.word() == "cores") field = &Host::core_count;
    if (words_.word() == "numa") field = &Host::numa_count;
    if (words_.word() == "package" || words_.word() == "packages") field = &Host::package_count;
    if (count && field != nullptr) {
      words_.advance();
      for (Host& host : hosts()) host.*field = static_cast<int>(*count);
      return ok();
    }
    return read_rails({0, static_cast<std::uint32_t>(hosts().size() - 1)}, count, false);
  }

  // "3 rails ..." or "2-5 rails ..."
  Status read_rails_of_some() {
    const std::uint32_t max = static_cast<std::uint32_t>(hosts().size() - 1);
    const std::string wanted =
        "a host or a range of hosts from 0 to " + std::to_string(max) + " such as 0 or 0-1";
    const std::string_view word = words_.word();
    const std::size_t dash = word.find('-');
    const auto number = [&](std::string_view text) -> std::optional<std::uint32_t> {
      std::uint32_t value = 0;
      const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
      return value;
    };
    const auto first = number(word.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number(word.substr(dash + 1));
    if (!first || !last || *first > *last || *last > max) return words_.expected(wanted);
    words_.advance();
    return read_rails({*first, *last}, words_.take_count(1, kTopologyCountMax), true);
  }

  Status read_rails(HostRange range, std::optional<std::uint32_t> count, bool replaces) {
    std::optional<RailKind> kind = parse_rail_kind(words_.word());
    if (words_.word() == "rail" || words_.word() == "rails") kind = RailKind::kTcp;
    if (!kind) {
      return words_.expected(count ? "'rails', a kind of rail, 'cores', 'numa' or 'packages'"
                                   : "'rails' or a kind of rail: tcp, ucx, verbs, shm, loopback, "
                                     "cuda_ipc");
    }
    words_.advance();
    std::vector<Rail> rails;
    const Status status = read_rates(*kind, rails);
    if (!status.is_ok()) return status;
    const std::size_t repeats = count.value_or(1);
    const std::size_t rail_count = repeats * rails.size();
    cost_bytes_ += rail_count * (range.last - range.first + 1) *
                   (sizeof(Rail) + kNameBytes + 2 * sizeof(CostCurve::Point));
    if (rail_count > kRailsPerHostMax || cost_bytes_ > kTopologyBytesMax) {
      return words_.expected("fewer rails");
    }
    for (std::uint32_t h = range.first; h <= range.last; ++h) {
      std::vector<Rail>& target = hosts()[h].rails;
      if (replaces) std::erase_if(target, [&](const Rail& rail) { return rail.kind == *kind; });
      for (std::size_t i = 0; i < repeats; ++i) {
        target.insert(target.end(), rails.begin(), rails.end());
      }
    }
    return ok();
  }

  // RATE {["+"] (RATE | TIME)}
  Status read_rates(RailKind kind, std::vector<Rail>& rails) {
    std::vector<double> rates;  // those whose latency is not known yet
    const auto flush = [&](double latency_us) {
      for (const double rate : rates) {
        Rail rail;
        rail.kind = kind;
        rail.curve = CostCurve::linear(latency_us, rate);
        rails.push_back(std::move(rail));
      }
      rates.clear();
    };
    bool needs_rate = true;
    while (needs_rate || (!words_.is_at_end() && words_.word() != ",")) {
      if (const auto rate = parse_rate(words_.word())) {
        rates.push_back(*rate);
      } else if (const auto time_us = parse_time_us(words_.word()); time_us && !rates.empty()) {
        if (needs_rate) return words_.expected(kRateExpected);
        flush(*time_us);
      } else {
        return words_.expected(needs_rate ? kRateExpected
                                          : std::string(kRateExpected) + ", " + kTimeExpected +
                                                ", ',' or the end");
      }
      words_.advance();
      needs_rate = words_.take("+");
    }
    flush(nominal_latency_us(kind));
    return ok();
  }

  // Names, planes and NUMA nodes, which depend on the whole line.
  void finish() {
    std::size_t network_planes = 0;
    for (const Host& host : hosts()) {
      const auto is_network = [](const Rail& rail) { return !is_host_local(rail.kind); };
      network_planes = std::max<std::size_t>(
          network_planes, std::count_if(host.rails.begin(), host.rails.end(), is_network));
    }
    for (std::size_t h = 0; h < hosts().size(); ++h) {
      Host& host = hosts()[h];
      host.name = "h" + std::to_string(h);
      finish_rails(host, static_cast<int>(network_planes));
      for (std::size_t i = 0; i < host.gpus.size(); ++i) {
        host.gpus[i].name = "gpu" + std::to_string(i);
        host.gpus[i].numa = spread(i, host.gpus.size(), host);
      }
    }
  }

  static void finish_rails(Host& host, int first_local_plane) {
    std::stable_partition(host.rails.begin(), host.rails.end(),
                          [](const Rail& rail) { return !is_host_local(rail.kind); });
    const auto is_local = [](const Rail& rail) { return is_host_local(rail.kind); };
    const std::size_t network_count =
        std::find_if(host.rails.begin(), host.rails.end(), is_local) - host.rails.begin();
    for (std::size_t i = 0; i < host.rails.size(); ++i) {
      Rail& rail = host.rails[i];
      const auto same = [&](const Rail& other) { return other.kind == rail.kind; };
      const auto begin = host.rails.begin();
      const auto here = begin + static_cast<long>(i);
      const auto before = static_cast<std::size_t>(std::count_if(begin, here, same));
      if (i < network_count) {
        const auto count = static_cast<std::size_t>(std::count_if(begin, host.rails.end(), same));
        rail.plane = static_cast<int>(i);
        rail.name = "rail" + std::to_string(i);
        rail.numa = spread(before, count, host);
        continue;
      }
      rail.plane = first_local_plane + static_cast<int>(i - network_count);
      rail.name = std::string(name(rail.kind));
      if (before > 0) rail.name += std::to_string(before);
    }
  }

  // The NUMA node of the i-th of `count` things.
  static int spread(std::size_t i, std::size_t count, const Host& host) {
    return host.numa_count == 0 ? -1 : static_cast<int>(i * host.numa_count / count);
  }

  Words words_;
  Topology topology_;
  std::size_t cost_bytes_ = 0;
};

}  // namespace

Result<Topology> parse_synthetic(std::string_view line) {
  return Builder(line).build();
}

}  // namespace polyrail
