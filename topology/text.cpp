// Parses the .topo format: hosts with their lines, repeats, ranks, and the bound on what all of it
// may cost. How one line reads is in text_read.cpp.
#include "topology/text.hpp"

#include <optional>
#include <set>
#include <span>
#include <utility>

#include "topology/text_read.hpp"

namespace polyrail {

namespace {

using topo::error_at;
using topo::Line;
using topo::parse_integer;
using topo::Reader;
using topo::Turn;

// What a value costs in memory, about.
std::size_t cost_bytes(const Host& host) {
  return sizeof(Host) + host.name.size();
}
std::size_t cost_bytes(const Gpu& gpu) {
  return sizeof(Gpu) + gpu.name.size() + gpu.pci.size();
}
std::size_t cost_bytes(const Rail& rail) {
  return sizeof(Rail) + rail.name.size() + rail.device.size() + rail.address.size() +
         rail.pci.size() + rail.curve.points.size() * sizeof(CostCurve::Point);
}

class Parser {
 public:
  Result<Topology> parse(std::string_view text) {
    const Result<std::vector<Line>> split = topo::split_lines(text);
    if (!split.is_ok()) return split.status();
    const std::vector<Line>& lines = split.value();
    for (std::size_t i = 0; i < lines.size();) {
      const std::string_view word = lines[i].words[0].text;
      std::size_t end = i + 1;
      Status status;
      if (word == "host") {
        while (end < lines.size() && belongs_to_host(lines[end])) ++end;
        status = add_hosts({&lines[i], end - i});
      } else if (word == "ranks") {
        status = add_ranks(lines[i]);
      } else if (word == "epoch") {
        status = set_epoch(lines[i]);
      } else {
        const std::string where = belongs_to_host(lines[i]) ? " before any host" : "";
        status = error_at(lines[i].number, "expected host, rail, gpu, ranks or epoch, found " +
                                               topo::quoted(word) + where);
      }
      if (!status.is_ok()) return status;
      i = end;
    }
    return std::move(topology_);
  }

 private:
  static bool belongs_to_host(const Line& line) {
    return line.words[0].text == "rail" || line.words[0].text == "gpu";
  }

  Status charge(std::size_t bytes, int line) {
    cost_bytes_ += bytes;
    if (cost_bytes_ <= kTopologyBytesMax) return ok();
    return error_at(line, "expected a topology of at most " +
                              std::to_string(kTopologyBytesMax >> 20) + " MiB, found a larger one");
  }

  // A host line and the lines below it, in all turns of the host.
  Status add_hosts(std::span<const Line> block) {
    Turn turn;
    Status status = start_turns(block[0], turn.own_count);
    turn.host_count = turn.own_count;
    for (std::uint32_t i = 0; status.is_ok() && i < turn.host_count; ++i) {
      turn.own_index = turn.host_index = i;
      status = add_host(block, turn);
    }
    return status;
  }

  Status add_host(std::span<const Line> block, const Turn& turn) {
    Reader reader(block[0], turn);
    Host host = topo::read_host(reader);
    if (!host_names_.insert(host.name).second) {
      reader.fail("a name that no other host has", topo::quoted(host.name));
    }
    if (!reader.status().is_ok()) return reader.status();
    Status status = charge(cost_bytes(host), block[0].number);
    std::set<std::string> rail_names;
    std::set<int> planes;
    for (std::size_t i = 1; status.is_ok() && i < block.size(); ++i) {
      Turn inner = turn;
      status = start_turns(block[i], inner.own_count);
      for (std::uint32_t k = 0; status.is_ok() && k < inner.own_count; ++k) {
        inner.own_index = k;
        Reader inner_reader(block[i], inner);
        status = block[i].words[0].text == "gpu"
                     ? add_gpu(inner_reader, host, block[i].number)
                     : add_rail(inner_reader, host, rail_names, planes, block[i].number);
      }
    }
    topology_.hosts.push_back(std::move(host));
    return status;
  }

  static Status start_turns(const Line& line, std::uint32_t& count) {
    if (line.words.size() < 2) return ok();  // the reader says what is missing
    const Result<std::uint32_t> repeats = topo::repeat_count(line.words[1]);
    if (!repeats.is_ok()) return error_at(line.number, repeats.status().message());
    count = repeats.value();
    return ok();
  }

  Status add_gpu(Reader& reader, Host& host, int line) {
    host.gpus.push_back(topo::read_gpu(reader));
    if (!reader.status().is_ok()) return reader.status();
    return charge(cost_bytes(host.gpus.back()), line);
  }

  Status add_rail(Reader& reader, Host& host, std::set<std::string>& names, std::set<int>& planes,
                  int line) {
    Rail rail = topo::read_rail(reader);
    if (!names.insert(rail.name).second) {
      reader.fail("a name that no other rail of the host has", topo::quoted(rail.name));
    }
    if (rail.plane >= 0 && !planes.insert(rail.plane).second) {
      reader.fail("a plane that no other rail of the host is on", std::to_string(rail.plane));
    }
    if (!reader.status().is_ok()) return reader.status();
    const Status status = charge(cost_bytes(rail), line);
    host.rails.push_back(std::move(rail));
    return status;
  }

  // "ranks 0 0 1 1", "ranks 0*8 1*8" or "ranks each 8".
  Status add_ranks(const Line& line) {
    const Turn turn;
    Reader reader(line, turn);
    const int host_count = static_cast<int>(topology_.hosts.size());
    if (host_count == 0) return error_at(line.number, "expected hosts before their ranks");
    const std::string expected = "'each' or hosts from 0 to " + std::to_string(host_count - 1) +
                                 " such as 0 or 0*8, of at most " +
                                 std::to_string(kTopologyRanksMax) + " ranks";
    do {
      const std::string word = reader.text(expected);
      if (word == "each") {
        const int count = reader.number("ranks of each host");
        for (int i = 0; i < host_count; ++i) add_ranks(reader, i, count, expected);
        reader.end();
      } else {
        const std::size_t star = word.find('*');
        const auto host =
            parse_integer<int>(std::string_view(word).substr(0, star), host_count - 1);
        const auto count =
            star == std::string::npos
                ? std::optional<int>(1)
                : parse_integer<int>(std::string_view(word).substr(star + 1), kTopologyRanksMax);
        if (!host || !count) reader.fail_on_last(expected);
        add_ranks(reader, host.value_or(0), count.value_or(0), expected);
      }
    } while (reader.has_more());
    return reader.status();
  }

  void add_ranks(Reader& reader, int host, int count, const std::string& expected) {
    if (!reader.status().is_ok()) return;
    if (count > kTopologyRanksMax - topology_.rank_count()) {
      reader.fail_on_last(expected);
      return;
    }
    topology_.rank_hosts.insert(topology_.rank_hosts.end(), count, host);
  }

  Status set_epoch(const Line& line) {
    const Turn turn;
    Reader reader(line, turn);
    const auto epoch = parse_integer<std::uint64_t>(reader.text("a number"), UINT64_MAX);
    if (!epoch) reader.fail_on_last("a number");
    if (std::exchange(has_epoch_, true)) reader.fail("one epoch", "a second one");
    reader.end();
    topology_.epoch = epoch.value_or(0);
    return reader.status();
  }

  Topology topology_;
  bool has_epoch_ = false;
  std::set<std::string> host_names_;
  std::size_t cost_bytes_ = 0;
};

}  // namespace

Result<Topology> parse_topology(std::string_view text) {
  return Parser().parse(text);
}

}  // namespace polyrail
