// Lines and words of the .topo format, below its meaning: comments, quotes and repeats.
//
// A word is bare or quoted. In a quoted word \" \\ \n \t \r and \xHH are escapes and nothing
// repeats. In a bare word "[0-7]" counts with the line it stands on, "{1-4}" with the host around
// it; "[08-11]" keeps its width.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <polyrail/status.hpp>

namespace polyrail::topo {

struct Word {
  std::string_view text;  // of a quoted word, what stands between the quotes
  bool is_quoted = false;
};

struct Line {
  int number = 0;
  std::vector<Word> words;  // never empty
};

// The lines that hold anything. The words point into `text`.
Result<std::vector<Line>> split_lines(std::string_view text);

// Which turn of its repeats a line is in.
struct Turn {
  std::uint32_t own_index = 0;
  std::uint32_t own_count = 1;
  std::uint32_t host_index = 0;
  std::uint32_t host_count = 1;
};

inline constexpr std::uint32_t kRepeatMax = 65536;

// How often a word repeats its line: the length of its first "[a-b]", 1 without one.
Result<std::uint32_t> repeat_count(const Word& word);
// The word in that turn, as a value: ranges replaced by numbers, escapes by characters.
Result<std::string> expand(const Word& word, const Turn& turn);
// The value as a word that expands to it: bare if that is possible, else quoted.
std::string quoted(std::string_view value);

}  // namespace polyrail::topo
