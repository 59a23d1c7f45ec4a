#include "topology/lines.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>

namespace polyrail::topo {

namespace {

Status invalid(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Splits one line; `number` is only for messages.
Result<std::vector<Word>> split_words(std::string_view line, int number) {
  std::vector<Word> words;
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size() || line[at] == '#') return words;
    const std::size_t begin = at;
    if (line[at] != '"') {
      while (at < line.size() && !is_space(line[at])) ++at;
      words.push_back({line.substr(begin, at - begin), false});
      continue;
    }
    ++at;
    while (at < line.size() && line[at] != '"') at += line[at] == '\\' ? 2 : 1;
    if (at >= line.size()) {
      return invalid("line " + std::to_string(number) + ": expected a closing quote (\")");
    }
    words.push_back({line.substr(begin + 1, at - begin - 1), true});
    ++at;
    if (at < line.size() && !is_space(line[at])) {
      return invalid("line " + std::to_string(number) +
                     ": expected a space after the closing quote");
    }
  }
}

struct Range {
  std::size_t begin = 0;  // of the bracket
  std::size_t end = 0;    // past the closing bracket
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::size_t width = 0;  // of the number as written
  bool is_own = false;    // [ ] rather than { }
};

// Reads the range whose bracket opens at `at`.
Result<Range> parse_range(std::string_view text, std::size_t at) {
  Range range;
  range.begin = at;
  range.is_own = text[at] == '[';
  const char* const end = text.data() + text.size();
  std::uint32_t last = 0;
  const auto first_end = std::from_chars(text.data() + at + 1, end, range.first);
  if (first_end.ec == std::errc() && first_end.ptr != end && *first_end.ptr == '-') {
    const auto last_end = std::from_chars(first_end.ptr + 1, end, last);
    const char closing = range.is_own ? ']' : '}';
    if (last_end.ec == std::errc() && last_end.ptr != end && *last_end.ptr == closing &&
        last >= range.first && last - range.first < kRepeatMax) {
      range.width = static_cast<std::size_t>(first_end.ptr - text.data()) - at - 1;
      range.end = static_cast<std::size_t>(last_end.ptr - text.data()) + 1;
      range.count = last - range.first + 1;
      return range;
    }
  }
  return invalid("expected a range of at most " + std::to_string(kRepeatMax) +
                 " such as [0-7] or {0-7} in '" + std::string(text) +
                 "' (a bracket that is none needs quotes)");
}

std::size_t find_bracket(std::string_view text, std::size_t from) {
  return std::min(text.find_first_of("[{", from), text.size());
}

Result<std::string> unescape(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      value += text[i];
      continue;
    }
    const char kind = ++i < text.size() ? text[i] : '\0';
    if (kind == '"' || kind == '\\') {
      value += kind;
    } else if (kind == 'n' || kind == 't' || kind == 'r') {
      value += kind == 'n' ? '\n' : kind == 't' ? '\t' : '\r';
    } else if (kind == 'x' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
               hex_digit(text[i + 2]) >= 0) {
      value += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      return invalid("expected \\\" \\\\ \\n \\t \\r or \\xHH after the backslash in \"" +
                     std::string(text) + "\"");
    }
  }
  return value;
}

}  // namespace

Result<std::vector<Line>> split_lines(std::string_view text) {
  std::vector<Line> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    Result<std::vector<Word>> words = split_words(line, number);
    if (!words.is_ok()) return words.status();
    if (!words.value().empty()) lines.push_back({number, std::move(words).value()});
  }
  return lines;
}

Result<std::uint32_t> repeat_count(const Word& word) {
  if (word.is_quoted) return 1U;
  for (std::size_t at = find_bracket(word.text, 0); at < word.text.size();) {
    const Result<Range> range = parse_range(word.text, at);
    if (!range.is_ok()) return range.status();
    if (range.value().is_own) return range.value().count;
    at = find_bracket(word.text, range.value().end);
  }
  return 1U;
}

Result<std::string> expand(const Word& word, const Turn& turn) {
  if (word.is_quoted) return unescape(word.text);
  std::string value;
  std::size_t done = 0;
  for (std::size_t at = find_bracket(word.text, 0); at < word.text.size();) {
    const Result<Range> parsed = parse_range(word.text, at);
    if (!parsed.is_ok()) return parsed.status();
    const Range& range = parsed.value();
    const std::uint32_t count = range.is_own ? turn.own_count : turn.host_count;
    if (range.count != count) {
      return invalid("expected a range of " + std::to_string(count) + " in '" +
                     std::string(word.text) + "', as " +
                     (range.is_own ? "the name of this line" : "the name of its host") + " has");
    }
    const std::string number =
        std::to_string(range.first + (range.is_own ? turn.own_index : turn.host_index));
    value += word.text.substr(done, at - done);
    if (number.size() < range.width) value.append(range.width - number.size(), '0');
    value += number;
    done = range.end;
    at = find_bracket(word.text, done);
  }
  value += word.text.substr(done);
  return value;
}

std::string quoted(std::string_view value) {
  const auto is_bare = [](unsigned char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '#' && c != '[' && c != '{';
  };
  if (!value.empty() && std::all_of(value.begin(), value.end(), is_bare)) return std::string(value);
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < ' ' || byte == 0x7f) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(byte));
      text += escape.data();
    } else {
      text += c;
    }
  }
  return text + '"';
}

}  // namespace polyrail::topo
