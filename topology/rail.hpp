// Rail and CostCurve: one local way to send, and what sending over it costs. Values only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyrail {

enum class RailKind : std::uint8_t { kLoopback, kShm, kTcp, kUcx, kVerbs, kCudaIpc };
std::string_view name(RailKind kind);
std::optional<RailKind> parse_rail_kind(std::string_view text);
// The latency that is usual for a kind, where nothing was measured.
double nominal_latency_us(RailKind kind);

// True for rails that end at the border of the host.
constexpr bool is_host_local(RailKind kind) {
  return kind == RailKind::kLoopback || kind == RailKind::kShm || kind == RailKind::kCudaIpc;
}

// Time to move a message of so many bytes over an otherwise idle rail, one way: piecewise linear
// through `points` (bytes ascending, time_us non-decreasing), continued beyond the last point with
// the last slope and below the first with the first point's time.
struct CostCurve {
  struct Point {
    std::uint64_t bytes = 0;
    double time_us = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::vector<Point> points;

  // The two-parameter curve latency + bytes / rate; empty if the rate is not positive.
  static CostCurve linear(double latency_us, double bytes_per_s);

  bool is_empty() const { return points.empty(); }
  double latency_us() const { return points.empty() ? 0 : points.front().time_us; }
  // The last slope: the rate for large messages. 0 if empty, infinite if the last slope is flat.
  double bytes_per_s() const;
  double time_us(double bytes) const;  // precondition: not empty
  // Inverse: the most bytes that arrive in that time; 0 below the latency.
  double bytes_within(double time_us) const;
  friend bool operator==(const CostCurve&, const CostCurve&) = default;
};

enum class Provenance : std::uint8_t { kNominal, kMeasured };
std::string_view name(Provenance provenance);

struct Rail {
  std::string name;  // unique in its host: "rail0", "eth1.ipv6", "shm"
  RailKind kind = RailKind::kTcp;
  std::string device;   // operating-system device, "" if there is none
  std::string address;  // printable: "10.77.0.1"
  int plane = -1;       // rails of one plane reach each other; -1: not known yet
  int numa = -1;        // NUMA index of the device, -1: not known
  std::string pci;      // "0000:03:00.0", "" for virtual devices
  Provenance provenance = Provenance::kNominal;
  CostCurve curve;        // egress cost; empty: not known
  double message_us = 0;  // of a processor, to post one message or to take one in, while all ranks
                          // of the job do; 0: not known
  friend bool operator==(const Rail&, const Rail&) = default;
};

}  // namespace polyrail
