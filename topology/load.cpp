#include "topology/load.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string_view>

#include "topology/import_hwloc.hpp"
#include "topology/text.hpp"

namespace polyrail {

namespace {

constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;

Status failed(StatusCode code, const std::string& path, const std::string& why) {
  return {code, (path == "-" ? "standard input" : path) + ": " + why};
}

Result<std::string> read_all(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    errno = 0;
    file.open(path, std::ios::binary);
    if (!file) return failed(StatusCode::kSystemError, path, std::strerror(errno));
  }
  std::istream& stream = path == "-" ? std::cin : file;
  std::string text;
  char buffer[65536];
  errno = 0;
  while (stream.read(buffer, sizeof buffer) || stream.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kFileBytesMax) {
      return failed(StatusCode::kInvalidArgument, path, "larger than 64 MiB");
    }
  }
  // A directory opens like a file and fails only here.
  if (stream.bad()) return failed(StatusCode::kSystemError, path, std::strerror(errno));
  return text;
}

Result<Topology> parse(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string::npos || text[first] != '<') return parse_topology(text);
  Result<HostProbe> probe = import_hwloc_xml(text);
  if (!probe.is_ok()) return probe.status();
  Topology topology;
  topology.hosts.push_back(std::move(probe).value().host);
  return topology;
}

}  // namespace

Result<Topology> load_topology(const std::string& path) {
  const Result<std::string> text = read_all(path);
  if (!text.is_ok()) return text.status();
  Result<Topology> topology = parse(text.value());
  if (topology.is_ok()) return topology;
  return failed(topology.status().code(), path, topology.status().message());
}

}  // namespace polyrail
