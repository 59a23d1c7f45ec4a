// Reads one line of the .topo format into a value: the vocabulary of each kind of line.
#pragma once

#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <polyrail/status.hpp>

#include "topology/lines.hpp"
#include "topology/topology.hpp"

namespace polyrail::topo {

Status error_at(int line, const std::string& message);

// A whole number from 0 to max and nothing else.
template <typename Integer>
std::optional<Integer> parse_integer(std::string_view text, Integer max) {
  Integer value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < 0 || value > max) return std::nullopt;
  return value;
}

// One line in one turn of its repeats, word by word. The first failure stays; after it every read
// gives an empty value, so that callers check status() once, at the end. Both arguments are
// borrowed for the life of the reader.
class Reader {
 public:
  Reader(const Line& line, const Turn& turn) : line_(line), turn_(turn) {}

  const Status& status() const { return status_; }
  bool has_more() const { return status_.is_ok() && next_ < line_.words.size(); }
  // True if the next word begins with a digit, so that it may be a point of a curve.
  bool next_is_number() const;

  // The next word. `expected` is for the message if it is not there.
  std::string text(const std::string& expected);
  std::string name(const std::string& expected);  // of at most kTopologyNameBytesMax
  int number(const std::string& what);            // from 0 to kTopologyCountMax
  double rate();
  double time_us();

  void fail(const std::string& expected, const std::string& found);
  void fail_on_last(const std::string& expected);
  // A key may stand once in a line: fails and returns false when it has been there.
  bool is_first(const std::string& key);
  // Fails unless the line is over.
  void end();

 private:
  const Line& line_;
  const Turn& turn_;
  std::size_t next_ = 1;  // the first word has chosen who reads the line
  std::string last_;
  std::set<std::string> seen_;
  Status status_;
};

// Each reads its whole line. The value counts only if the reader's status is ok.
Host read_host(Reader& reader);  // without GPUs and rails
Gpu read_gpu(Reader& reader);
Rail read_rail(Reader& reader);

}  // namespace polyrail::topo
