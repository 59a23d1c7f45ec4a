// A canvas that writes SVG, and how wide its texts are.
#pragma once

#include <string>
#include <string_view>

namespace polyrail::topo {

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
  double center_x() const { return x + width / 2; }
  double center_y() const { return y + height / 2; }
};

struct Font {
  double size = 11;
  bool is_bold = false;
};

// An upper bound of the width in the usual sans-serif fonts.
double text_width(std::string_view text, Font font);
// The text, shortened with "..." until it fits.
std::string fitted(std::string_view text, double width, Font font);

struct Stroke {
  std::string_view color = "#5f6b7a";
  double width = 1;
  std::string_view dashes;  // as in stroke-dasharray, "" for a full line
};

enum class Anchor { kStart, kMiddle };

class Svg {
 public:
  void rect(const Box& box, std::string_view fill, const Stroke& stroke, double radius = 4);
  void line(double x1, double y1, double x2, double y2, const Stroke& stroke);
  void dot(double x, double y, double radius, std::string_view fill);
  // `baseline` is the y of the line the letters stand on. Any bytes; what XML cannot hold is
  // replaced.
  void text(double x, double baseline, std::string_view text, Font font,
            std::string_view color = "#1f2933", Anchor anchor = Anchor::kStart);
  // The whole picture on a white ground. The canvas is empty afterwards.
  std::string finish(double width, double height, std::string_view title);

 private:
  std::string body_;
};

}  // namespace polyrail::topo
