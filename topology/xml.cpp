#include "topology/xml.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "topology/label.hpp"

namespace polyrail::topo {

namespace {

constexpr std::size_t kTextBytesMax = std::size_t{32} << 20;
constexpr std::size_t kDepthMax = 200;
constexpr std::size_t kPartsMax = std::size_t{1} << 20;  // elements and attributes

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':';
}

void append_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    text += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// The character that "amp", "#65" or "#x41" stands for, appended; false if it is none of those.
bool append_entity(std::string& text, std::string_view entity) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kNamed = {
      {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};
  for (const auto& [entity_name, character] : kNamed) {
    if (entity == entity_name) {
      text += character;
      return true;
    }
  }
  if (!entity.starts_with('#')) return false;
  entity.remove_prefix(1);
  int base = 10;
  if (entity.starts_with('x')) {
    entity.remove_prefix(1);
    base = 16;
  }
  std::uint32_t code = 0;
  const char* const end = entity.data() + entity.size();
  const auto [rest, error] = std::from_chars(entity.data(), end, code, base);
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (error != std::errc() || rest != end || code == 0 || code > 0x10ffff || is_surrogate) {
    return false;
  }
  append_utf8(text, code);
  return true;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<XmlElement> parse() {
    if (text_.size() > kTextBytesMax) return failed("a file of at most 32 MiB");
    std::optional<XmlElement> root;
    std::vector<XmlElement> open;  // the elements around the current place
    while (skip_to_markup()) {
      Status status;
      if (starts_with("<!--")) {
        status = skip_past("-->");
      } else if (starts_with("<?")) {
        status = skip_past("?>");
      } else if (starts_with("<![CDATA[")) {
        status = skip_past("]]>");
      } else if (starts_with("<!")) {
        status = skip_past(">");
      } else if (starts_with("</")) {
        if (open.empty()) return failed("an element before its end");
        status = read_end(open.back());
        if (status.is_ok()) close(open, root);
      } else {
        if (root) return failed("the end of the file after the root element");
        if (open.size() == kDepthMax) return failed("at most 200 elements inside each other");
        bool is_empty_element = false;
        open.emplace_back();
        status = read_start(open.back(), is_empty_element);
        if (status.is_ok() && is_empty_element) close(open, root);
      }
      if (!status.is_ok()) return status;
    }
    if (!open.empty()) return failed("</" + std::string(open.back().name.substr(0, 40)) + ">");
    if (!root) return failed("an element");
    return std::move(*root);
  }

 private:
  bool is_at_end() const { return at_ == text_.size(); }
  bool starts_with(std::string_view prefix) const { return text_.substr(at_).starts_with(prefix); }
  void advance(std::size_t count) {
    line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + at_ + count, '\n'));
    at_ += count;
  }
  bool skip_to_markup() {
    advance(std::min(text_.find('<', at_), text_.size()) - at_);
    return !is_at_end();
  }
  void skip_space() {
    while (!is_at_end() && is_space(text_[at_])) advance(1);
  }
  Status failed(const std::string& expected) const {
    const std::string found =
        is_at_end() ? "the end of the file" : "'" + topo::printable(text_.substr(at_, 1)) + "'";
    return {StatusCode::kInvalidArgument,
            "line " + std::to_string(line_) + ": expected " + expected + ", found " + found};
  }
  Status skip_past(std::string_view closing) {
    const std::size_t found = text_.find(closing, at_);
    if (found == std::string_view::npos) return failed(std::string(closing) + " behind this");
    advance(found + closing.size() - at_);
    return ok();
  }
  std::string_view read_name() {
    const std::size_t begin = at_;
    while (!is_at_end() && is_name_character(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // <name key="value" ...> or <name ... />
  Status read_start(XmlElement& element, bool& is_empty_element) {
    element.line = line_;
    advance(1);
    element.name = read_name();
    if (element.name.empty()) return failed("the name of an element");
    while (true) {
      if (++part_count_ > kPartsMax) return failed("at most a million elements and attributes");
      skip_space();
      if (starts_with(">") || starts_with("/>")) {
        is_empty_element = starts_with("/");
        advance(is_empty_element ? 2 : 1);
        return ok();
      }
      const Status status = read_attribute(element);
      if (!status.is_ok()) return status;
    }
  }

  Status read_attribute(XmlElement& element) {
    const std::string_view key = read_name();
    if (key.empty()) return failed("an attribute, '>' or '/>'");
    skip_space();
    if (!starts_with("=")) return failed("'=' after the attribute " + std::string(key));
    advance(1);
    skip_space();
    if (!starts_with("\"") && !starts_with("'")) return failed("a quote before the value");
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return failed("a closing quote behind this");
    const std::string_view raw = text_.substr(at_ + 1, end - at_ - 1);
    std::string value;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '&') {
        value += raw[i];
        continue;
      }
      const std::size_t semicolon = raw.find(';', i);
      if (semicolon == std::string_view::npos ||
          !append_entity(value, raw.substr(i + 1, semicolon - i - 1))) {
        return failed("only &amp; &lt; &gt; &quot; &apos; and character references in the value");
      }
      i = semicolon;
    }
    element.attributes.emplace_back(key, std::move(value));
    advance(end + 1 - at_);
    return ok();
  }

  Status read_end(const XmlElement& element) {
    advance(2);
    if (read_name() != element.name) {
      return failed("</" + std::string(element.name.substr(0, 40)) + "> for the element of line " +
                    std::to_string(element.line));
    }
    skip_space();
    if (!starts_with(">")) return failed("'>'");
    advance(1);
    return ok();
  }

  static void close(std::vector<XmlElement>& open, std::optional<XmlElement>& root) {
    XmlElement element = std::move(open.back());
    open.pop_back();
    if (open.empty()) {
      root = std::move(element);
    } else {
      open.back().children.push_back(std::move(element));
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t part_count_ = 0;
};

}  // namespace

std::string_view XmlElement::attribute(std::string_view attribute_name) const {
  for (const auto& [key, value] : attributes) {
    if (key == attribute_name) return value;
  }
  return "";
}

Result<XmlElement> parse_xml(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace polyrail::topo
