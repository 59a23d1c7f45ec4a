// IntervalSet: which bytes of a put have arrived. Slices come in any order, over any rail, maybe
// twice; each byte must count once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace polyrail {

class IntervalSet {
 public:
  IntervalSet() { parts_.reserve(kReserved); }

  void clear() {
    parts_.clear();
    covered_ = 0;
  }
  std::uint64_t covered_bytes() const { return covered_; }

  bool contains(std::uint64_t begin, std::uint64_t end) const {
    for (const Part& part : parts_) {
      if (part.begin <= begin && end <= part.end) return true;
    }
    return begin == end;
  }

  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Part& part : parts_) visit(part.begin, part.end);
  }

  // The parts of [begin, end) that are there.
  template <typename Visit>
  void for_each_within(std::uint64_t begin, std::uint64_t end, Visit&& visit) const {
    for (const Part& part : parts_) {
      const std::uint64_t from = std::max(begin, part.begin);
      const std::uint64_t to = std::min(end, part.end);
      if (from < to) visit(from, to);
    }
  }

  // Calls fresh(from, to) for each range of [begin, end) that was not there before, then adds it.
  template <typename Fresh>
  void add(std::uint64_t begin, std::uint64_t end, Fresh&& fresh) {
    if (begin >= end) return;
    auto first = std::find_if(parts_.begin(), parts_.end(),
                              [&](const Part& part) { return part.end >= begin; });
    auto last = first;
    std::uint64_t from = begin;
    Part merged{begin, end};
    for (; last != parts_.end() && last->begin <= end; ++last) {
      if (from < last->begin) {
        covered_ += last->begin - from;
        fresh(from, last->begin);
      }
      from = std::max(from, last->end);
      merged.begin = std::min(merged.begin, last->begin);
      merged.end = std::max(merged.end, last->end);
    }
    if (from < end) {
      covered_ += end - from;
      fresh(from, end);
    }
    if (first == last) {
      parts_.insert(first, merged);
    } else {
      *first = merged;
      parts_.erase(first + 1, last);
    }
  }

 private:
  // Slices of one rail come in order, so there are about as many parts as rails and steals.
  static constexpr std::size_t kReserved = 32;
  struct Part {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::vector<Part> parts_;  // ascending, apart from each other
  std::uint64_t covered_ = 0;
};

}  // namespace polyrail
