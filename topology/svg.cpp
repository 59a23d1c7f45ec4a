#include "topology/svg.hpp"

#include <array>
#include <cstdio>
#include <utility>

#include "topology/label.hpp"

namespace polyrail::topo {

namespace {

constexpr const char* kFontFamily = "DejaVu Sans, Verdana, Arial, Helvetica, sans-serif";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// ` key="12.5"`, without a trailing ".0".
std::string attribute(const char* key, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), " %s=\"%.6g\"", key, value);
  return text.data();
}

std::string attribute(const char* key, std::string_view value) {
  return std::string(" ") + key + "=\"" + escaped(value) + "\"";
}

std::string attributes(const Stroke& stroke) {
  std::string text = attribute("stroke", stroke.color) + attribute("stroke-width", stroke.width);
  if (!stroke.dashes.empty()) text += attribute("stroke-dasharray", stroke.dashes);
  return text;
}

// Width of a character in units of the font size: the widths of DejaVu Sans, rounded up by class.
double character_width(unsigned char first_byte) {
  const std::string_view narrow = "ijl.,:;'|! ()[]-/\\frtI";
  const std::string_view wide = "mwMW%@#&+=<>~_GOQ";
  if (first_byte >= 0x80) return 1.05;
  const char c = static_cast<char>(first_byte);
  if (narrow.find(c) != std::string_view::npos) return 0.42;
  if (wide.find(c) != std::string_view::npos) return c == 'm' || c == '@' || c == 'W' ? 1.0 : 0.87;
  if (c >= 'A' && c <= 'Z') return 0.75;
  return 0.64;
}

}  // namespace

double text_width(std::string_view text, Font font) {
  double width = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) != 0x80) width += character_width(byte);  // once per UTF-8 character
  }
  return width * font.size * (font.is_bold ? 1.13 : 1);
}

std::string fitted(std::string_view text, double width, Font font) {
  constexpr double kRounding = 0.01;  // a box made for the text must hold it
  std::string result = printable(text);
  const std::size_t characters = character_count(result);
  for (std::size_t kept = characters; kept > 0 && text_width(result, font) > width + kRounding;
       --kept) {
    result = shortened(printable(text), kept - 1);
  }
  return result;
}

void Svg::rect(const Box& box, std::string_view fill, const Stroke& stroke, double radius) {
  body_ += "<rect" + attribute("x", box.x) + attribute("y", box.y) + attribute("width", box.width) +
           attribute("height", box.height) + attribute("rx", radius) + attribute("fill", fill) +
           attributes(stroke) + "/>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, const Stroke& stroke) {
  body_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
           attribute("y2", y2) + attributes(stroke) + "/>\n";
}

void Svg::dot(double x, double y, double radius, std::string_view fill) {
  body_ += "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) +
           attribute("fill", fill) + "/>\n";
}

void Svg::text(double x, double baseline, std::string_view text, Font font, std::string_view color,
               Anchor anchor) {
  if (text.empty()) return;
  body_ += "<text" + attribute("x", x) + attribute("y", baseline) +
           attribute("font-size", font.size) + attribute("fill", color);
  if (font.is_bold) body_ += attribute("font-weight", "bold");
  if (anchor == Anchor::kMiddle) body_ += attribute("text-anchor", "middle");
  body_ += ">" + escaped(text) + "</text>\n";
}

std::string Svg::finish(double width, double height, std::string_view title) {
  const std::string head = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) +
                           attribute("height", height) + attribute("font-family", kFontFamily) +
                           ">\n<title>" + escaped(title) + "</title>\n<rect" +
                           attribute("width", width) + attribute("height", height) +
                           attribute("fill", "#ffffff") + "/>\n";
  return head + std::exchange(body_, {}) + "</svg>\n";
}

}  // namespace polyrail::topo
