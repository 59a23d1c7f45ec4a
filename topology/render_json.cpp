// The topology as JSON. render.hpp lists the names.
#include <nlohmann/json.hpp>

#include "topology/render.hpp"

namespace polyrail {

namespace {

using Json = nlohmann::ordered_json;

Json known(int value, int unknown) {
  return value == unknown ? Json() : Json(value);
}
Json known(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}
Json known(double value) {
  return value > 0 ? Json(value) : Json();  // infinity becomes null when it is printed
}

Json to_value(const Rail& rail) {
  Json curve = Json::array();
  for (const CostCurve::Point& point : rail.curve.points) {
    curve.push_back({{"bytes", point.bytes}, {"time_us", point.time_us}});
  }
  return {{"name", rail.name},
          {"kind", name(rail.kind)},
          {"plane", known(rail.plane, -1)},
          {"device", known(rail.device)},
          {"address", known(rail.address)},
          {"pci", known(rail.pci)},
          {"numa", known(rail.numa, -1)},
          {"provenance", name(rail.provenance)},
          {"latency_us", rail.curve.is_empty() ? Json() : Json(rail.curve.latency_us())},
          {"bytes_per_s", known(rail.curve.bytes_per_s())},
          {"curve", std::move(curve)},
          {"message_us", known(rail.message_us)}};
}

Json to_value(const Host& host) {
  Json gpus = Json::array();
  for (const Gpu& gpu : host.gpus) {
    gpus.push_back({{"name", gpu.name}, {"pci", known(gpu.pci)}, {"numa", known(gpu.numa, -1)}});
  }
  Json rails = Json::array();
  for (const Rail& rail : host.rails) rails.push_back(to_value(rail));
  return {{"name", host.name},
          {"packages", known(host.package_count, 0)},
          {"numa_nodes", known(host.numa_count, 0)},
          {"cores", known(host.core_count, 0)},
          {"copy_bytes_per_s", known(host.copy_bytes_per_s)},
          {"gpus", std::move(gpus)},
          {"rails", std::move(rails)}};
}

}  // namespace

std::string to_json(const Topology& topology) {
  Json hosts = Json::array();
  for (const Host& host : topology.hosts) hosts.push_back(to_value(host));
  const Json value = {
      {"epoch", topology.epoch}, {"hosts", std::move(hosts)}, {"ranks", topology.rank_hosts}};
  // Names that are not UTF-8 must not throw.
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace polyrail
