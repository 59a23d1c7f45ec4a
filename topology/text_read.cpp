#include "topology/text_read.hpp"

#include "topology/label.hpp"
#include "topology/text.hpp"
#include "topology/units.hpp"

namespace polyrail::topo {

Status error_at(int line, const std::string& message) {
  return {StatusCode::kInvalidArgument, "line " + std::to_string(line) + ": " + printable(message)};
}

bool Reader::next_is_number() const {
  if (!has_more()) return false;
  const Word& word = line_.words[next_];
  return !word.is_quoted && word.text[0] >= '0' && word.text[0] <= '9';
}

std::string Reader::text(const std::string& expected) {
  if (!has_more()) {
    fail(expected, "the end of the line");
    return "";
  }
  Result<std::string> value = expand(line_.words[next_], turn_);
  if (!value.is_ok()) {
    status_ = error_at(line_.number, value.status().message());
    return "";
  }
  ++next_;
  last_ = std::move(value).value();
  return last_;
}

std::string Reader::name(const std::string& expected) {
  std::string value = text(expected);
  if (value.size() <= kTopologyNameBytesMax) return value;
  fail(expected + " of at most " + std::to_string(kTopologyNameBytesMax) + " bytes",
       std::to_string(value.size()) + " bytes");
  return "";
}

int Reader::number(const std::string& what) {
  const std::string expected = what + " as a number from 0 to " + std::to_string(kTopologyCountMax);
  const auto value = parse_integer<int>(text(expected), kTopologyCountMax);
  if (!value) fail_on_last(expected);
  return value.value_or(0);
}

double Reader::rate() {
  const auto value = parse_rate(text(kRateExpected));
  if (!value) fail_on_last(kRateExpected);
  return value.value_or(1);
}

double Reader::time_us() {
  const auto value = parse_time_us(text(kTimeExpected));
  if (!value) fail_on_last(kTimeExpected);
  return value.value_or(0);
}

void Reader::fail(const std::string& expected, const std::string& found) {
  if (status_.is_ok()) {
    status_ = error_at(line_.number, "expected " + expected + ", found " + found);
  }
}

void Reader::fail_on_last(const std::string& expected) {
  // A long word is shown by its beginning.
  constexpr std::size_t kShownMax = 80;
  fail(expected,
       last_.size() <= kShownMax ? quoted(last_) : quoted(last_.substr(0, kShownMax)) + "...");
}

bool Reader::is_first(const std::string& key) {
  if (seen_.insert(key).second) return true;
  fail("'" + key + "' at most once in a line", "it again");
  return false;
}

void Reader::end() {
  if (has_more()) fail("the end of the line", "more words");
}

namespace {

// "4096" or "64KiB".
std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t unit = 1;
  if (text.ends_with("KiB")) unit = std::uint64_t{1} << 10;
  if (text.ends_with("MiB")) unit = std::uint64_t{1} << 20;
  if (text.ends_with("GiB")) unit = std::uint64_t{1} << 30;
  if (unit != 1) text.remove_suffix(3);
  const auto number = parse_integer<std::uint64_t>(text, UINT64_MAX / unit);
  return number ? std::optional<std::uint64_t>(*number * unit) : std::nullopt;
}

CostCurve read_curve(Reader& reader) {
  const std::string expected = "points such as 0:0.3us 64KiB:12us, both numbers ascending";
  CostCurve curve;
  do {
    const std::string word = reader.text(expected);
    const std::size_t colon = word.find(':');
    const auto bytes = parse_bytes(std::string_view(word).substr(0, colon));
    const auto time_us = colon == std::string::npos
                             ? std::nullopt
                             : parse_time_us(std::string_view(word).substr(colon + 1));
    const bool is_ascending = bytes && time_us &&
                              (curve.points.empty() || (*bytes > curve.points.back().bytes &&
                                                        *time_us >= curve.points.back().time_us));
    if (!is_ascending) {
      reader.fail_on_last(expected);
      return {};
    }
    curve.points.push_back({*bytes, *time_us});
  } while (reader.next_is_number());
  return curve;
}

}  // namespace

Host read_host(Reader& reader) {
  Host host;
  host.name = reader.name("the name of a host");
  while (reader.has_more()) {
    const std::string key = reader.text("a key");
    if (!reader.is_first(key)) break;
    if (key == "packages") {
      host.package_count = reader.number("packages");
    } else if (key == "numa") {
      host.numa_count = reader.number("NUMA nodes");
    } else if (key == "cores") {
      host.core_count = reader.number("cores");
    } else if (key == "copy") {
      host.copy_bytes_per_s = reader.rate();
    } else {
      reader.fail_on_last("packages, numa, cores or copy");
    }
  }
  return host;
}

Gpu read_gpu(Reader& reader) {
  Gpu gpu;
  gpu.name = reader.name("the name of a GPU");
  while (reader.has_more()) {
    const std::string key = reader.text("a key");
    if (!reader.is_first(key)) break;
    if (key == "pci") {
      gpu.pci = reader.name("a PCI address");
    } else if (key == "numa") {
      gpu.numa = reader.number("a NUMA node");
    } else {
      reader.fail_on_last("pci or numa");
    }
  }
  return gpu;
}

Rail read_rail(Reader& reader) {
  Rail rail;
  rail.name = reader.name("the name of a rail");
  const std::string kinds = "a kind of rail: loopback, shm, tcp, ucx, verbs or cuda_ipc";
  const auto kind = parse_rail_kind(reader.text(kinds));
  if (!kind) reader.fail_on_last(kinds);
  rail.kind = kind.value_or(RailKind::kTcp);
  std::optional<double> rate;
  std::optional<double> latency_us;
  while (reader.has_more()) {
    const std::string key = reader.text("a key");
    // "measured" and "nominal" are two words for one thing.
    if (!reader.is_first(key == "nominal" ? "measured" : key)) break;
    if (key == "plane") {
      rail.plane = reader.number("a plane");
    } else if (key == "device") {
      rail.device = reader.name("the name of a device");
    } else if (key == "address") {
      rail.address = reader.name("an address");
    } else if (key == "pci") {
      rail.pci = reader.name("a PCI address");
    } else if (key == "numa") {
      rail.numa = reader.number("a NUMA node");
    } else if (key == "rate") {
      rate = reader.rate();
    } else if (key == "latency") {
      latency_us = reader.time_us();
    } else if (key == "message") {
      rail.message_us = reader.time_us();
    } else if (key == "curve") {
      rail.curve = read_curve(reader);
    } else if (key == "measured") {
      rail.provenance = Provenance::kMeasured;
    } else if (key != "nominal") {
      reader.fail_on_last(
          "plane, device, address, pci, numa, rate, latency, curve, message, measured or nominal");
    }
  }
  if (latency_us && !rate) reader.fail("a rate beside the latency", "none");
  if (rate && !rail.curve.is_empty()) reader.fail("either a rate or a curve", "both");
  if (rate) rail.curve = CostCurve::linear(latency_us.value_or(0), *rate);
  return rail;
}

}  // namespace polyrail::topo
