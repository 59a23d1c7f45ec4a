// Draws the picture that picture.cpp has laid out.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "topology/picture.hpp"
#include "topology/render.hpp"
#include "topology/units.hpp"

namespace polyrail {

namespace {

using namespace topo;  // NOLINT: everything here is drawn with it

constexpr std::array<std::string_view, 8> kPlaneColors = {
    "#0072b2", "#d55e00", "#009e73", "#aa4499", "#b58900", "#3a86c8", "#6a4c93", "#8c564b"};
constexpr std::string_view kLocalColor = "#5f6b7a";
constexpr std::string_view kUnknownColor = "#8a8f98";
constexpr std::string_view kFaint = "#5f6b7a";
constexpr double kThinnest = 2;
constexpr double kThickest = 10;

std::string_view color_of(const Rail& rail) {
  if (is_host_local(rail.kind)) return kLocalColor;
  if (rail.plane < 0) return kUnknownColor;
  return kPlaneColors[static_cast<std::size_t>(rail.plane) % kPlaneColors.size()];
}

std::string_view dashes_of(const Rail& rail) {
  if (rail.curve.is_empty()) return "2 4";
  return rail.provenance == Provenance::kMeasured ? "" : "9 5";
}

// Widths of lines: logarithmic from the slowest rail to the fastest.
class Scale {
 public:
  explicit Scale(const Topology& topology) {
    for (const Host& host : topology.hosts) {
      for (const Rail& rail : host.rails) {
        const double rate = rail.curve.bytes_per_s();
        if (!(rate > 0) || std::isinf(rate)) continue;
        if (slowest_ == nullptr || rate < slowest_->curve.bytes_per_s()) slowest_ = &rail;
        if (fastest_ == nullptr || rate > fastest_->curve.bytes_per_s()) fastest_ = &rail;
      }
    }
  }
  const Rail* slowest() const { return slowest_; }
  const Rail* fastest() const { return fastest_; }
  double width(const Rail& rail) const {
    const double rate = rail.curve.bytes_per_s();
    if (!(rate > 0)) return kThinnest;
    if (std::isinf(rate)) return kThickest;
    const double slow = slowest_->curve.bytes_per_s();
    const double fast = fastest_->curve.bytes_per_s();
    if (fast <= slow) return (kThinnest + kThickest) / 2;
    return kThinnest + (kThickest - kThinnest) * std::log(rate / slow) / std::log(fast / slow);
  }

 private:
  const Rail* slowest_ = nullptr;
  const Rail* fastest_ = nullptr;
};

void draw_plane(Svg& svg, const PlanePicture& plane) {
  const auto color = kPlaneColors[static_cast<std::size_t>(plane.plane) % kPlaneColors.size()];
  svg.rect(plane.band, "#f1f4f8", {color, 1.2, ""}, 8);
  svg.text(plane.label.x + 10, plane.label.y + 13, "plane " + std::to_string(plane.plane),
           kSmallBoldFont, color);
  svg.text(plane.label.x + 10, plane.label.y + 26,
           fitted(plane.caption, plane.label.width - 12, kSmallFont), kSmallFont, kFaint);
}

// The line from a NIC to its band, with a white seam where it crosses other bands.
void draw_rail(Svg& svg, const Picture& picture, const HostPicture& host, const NicPicture& nic,
               const Scale& scale) {
  const double x = nic.box.center_x();
  const double from = host.is_above ? nic.box.bottom() : nic.box.y;
  const double edge = host.is_above ? host.box.bottom() : host.box.y;
  const double width = scale.width(*nic.rail);
  const Stroke stroke{color_of(*nic.rail), width, dashes_of(*nic.rail)};
  const PlanePicture* plane = nic.rail->plane < 0 ? nullptr : picture.plane(nic.rail->plane);
  if (plane == nullptr) {  // not known, or not drawn: a stub
    const double to = edge + (host.is_above ? 14 : -14);
    svg.line(x, from, x, to, stroke);
    svg.text(x, host.is_above ? to + 12 : to - 4, "?", kSmallBoldFont, kUnknownColor,
             Anchor::kMiddle);
    return;
  }
  const double to = plane->band.center_y();
  svg.line(x, edge, x, to, {"#ffffff", width + 5, ""});
  svg.line(x, from, x, to, stroke);
  svg.dot(x, to, width / 2 + 4, stroke.color);
}

void draw_nic(Svg& svg, const NicPicture& nic) {
  svg.rect(nic.box, "#ffffff", {color_of(*nic.rail), 1.6, ""});
  const std::vector<std::string> lines = nic_lines(*nic.rail);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Font font = i == 0 ? kSmallBoldFont : kSmallFont;
    svg.text(nic.box.center_x(), nic.box.y + 14 + static_cast<double>(i) * kSmallLine,
             fitted(lines[i], nic.box.width - 8, font), font, i < 2 ? "#1f2933" : kFaint,
             Anchor::kMiddle);
  }
}

void draw_gpu(Svg& svg, const GpuPicture& gpu) {
  svg.rect(gpu.box, "#e3f1e1", {"#4d8f46", 1.2, ""});
  const double width = gpu.box.width - 8;
  const std::string& pci = gpu.gpu->pci;
  svg.text(gpu.box.center_x(), gpu.box.y + (pci.empty() ? 22 : 15),
           fitted(gpu.gpu->name, width, kSmallFont), kSmallFont, "#1f2933", Anchor::kMiddle);
  svg.text(gpu.box.center_x(), gpu.box.y + 29, fitted(pci, width, Font{9, false}), Font{9, false},
           kFaint, Anchor::kMiddle);
}

void draw_local(Svg& svg, const LocalPicture& local, const Scale& scale) {
  const double y = local.box.y + 24;
  const double inset = 8;
  const Stroke stroke{kLocalColor, scale.width(*local.rail), dashes_of(*local.rail)};
  svg.text(local.box.center_x(), local.box.y + 13,
           fitted(local_text(*local.rail), local.box.width, kSmallFont), kSmallFont, "#1f2933",
           Anchor::kMiddle);
  svg.line(local.box.x + inset, y, local.box.right() - inset, y, stroke);
  svg.dot(local.box.x + inset, y, stroke.width / 2 + 2, kLocalColor);
  svg.dot(local.box.right() - inset, y, stroke.width / 2 + 2, kLocalColor);
}

void draw_host(Svg& svg, const HostPicture& host, const Scale& scale) {
  if (host.group.count > 1) {  // a stack of hosts
    for (const double offset : {8.0, 4.0}) {
      const double y = host.box.y + (host.is_above ? -offset : offset);
      svg.rect({host.box.x + offset, y, host.box.width, host.box.height}, "#f7f9fb",
               {"#9aa5b1", 1, ""}, 8);
    }
  }
  svg.rect(host.box, "#f7f9fb", {"#3e4c59", 1.4, ""}, 8);
  double y = host.header_top;
  for (std::size_t i = 0; i < host.header.size(); ++i) {
    const Font font = i == 0 ? kNameFont : kSmallFont;
    y += i == 0 ? kHeaderLine - 3 : kSmallLine;
    svg.text(host.box.x + 10, y, fitted(host.header[i], host.box.width - 20, font), font,
             i == 0 ? "#1f2933" : kFaint);
  }
  for (const LocalPicture& local : host.locals) draw_local(svg, local, scale);
  for (const NodePicture& node : host.nodes) {
    if (!node.label.empty()) {
      svg.rect(node.box, "#ffffff", {"#c3ccd5", 1, ""}, 6);
      const double label_y = host.is_above ? node.box.y + 14 : node.box.bottom() - 6;
      svg.text(node.box.x + 8, label_y, node.label, kSmallFont, kFaint);
    }
    for (const GpuPicture& gpu : node.gpus) draw_gpu(svg, gpu);
    for (const NicPicture& nic : node.nics) draw_nic(svg, nic);
  }
}

// One sample line with its text; returns where the next may begin.
double draw_sample(Svg& svg, double x, double y, const Stroke& stroke, const std::string& text) {
  svg.line(x, y, x + 40, y, stroke);
  svg.text(x + 48, y + 4, text, kSmallFont);
  return x + 48 + text_width(text, kSmallFont) + 22;
}

void draw_legend(Svg& svg, const Picture& picture, const Scale& scale) {
  double y = picture.legend_top + 18;
  double x = 24;
  x = draw_sample(svg, x, y, {kFaint, 4, ""}, "measured");
  x = draw_sample(svg, x, y, {kFaint, 4, "9 5"}, "nominal");
  draw_sample(svg, x, y, {kUnknownColor, kThinnest, "2 4"}, "rate not known");
  if (scale.slowest() == nullptr) return;
  y += 24;
  x = 24;
  for (const Rail* rail : {scale.slowest(), scale.fastest()}) {
    if (rail == scale.fastest() && rate_of(*rail) == rate_of(*scale.slowest())) break;
    x = draw_sample(svg, x, y, {kFaint, scale.width(*rail), ""}, rate_of(*rail));
  }
  svg.text(x, y + 4, "lines widen with the logarithm of the rate", kSmallFont, kFaint);
}

}  // namespace

std::string render_svg(const Topology& topology) {
  const Picture picture = lay_out(topology);
  const Scale scale(topology);
  Svg svg;
  svg.text(24, 24 + 14, picture.title, Font{16, true});
  for (const PlanePicture& plane : picture.planes) draw_plane(svg, plane);
  for (const HostPicture& host : picture.hosts) draw_host(svg, host, scale);
  // Lines last: they leave their NIC at its edge and cross nothing but bands.
  for (const HostPicture& host : picture.hosts) {
    for (const NodePicture& node : host.nodes) {
      for (const NicPicture& nic : node.nics) draw_rail(svg, picture, host, nic, scale);
    }
  }
  draw_legend(svg, picture, scale);
  return svg.finish(picture.width, picture.height, "Polyrail topology: " + picture.title);
}

}  // namespace polyrail
