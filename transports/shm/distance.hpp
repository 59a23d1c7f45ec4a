// Distance: is the receiver near, so that this processor can write fast what the other reads?
//
// Bytes written in the usual way lie in this processor's caches, from where a receiver on a
// processor nearby takes them in the fastest way. Far away (another cache, another socket) it is
// the opposite: before each line is written again, the receiver's copy of it must be called back,
// which is several times slower than writing to main memory past all caches. Where the processes
// run, and on a virtual machine even where its processors are, changes in mid-run; so this is
// measured all the time: a small part of what is sent is always written in the usual way, and
// timed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyrail::shm {

class DistanceMeter {
 public:
  // memcpy, into memory that the receiver has read before, which serves as a measurement.
  void copy(std::byte* target, const std::byte* source, std::size_t bytes);
  // Until there is evidence: that mistake costs less than the other.
  bool is_far() const { return is_far_; }

 private:
  void judge(bool seems_far);

  bool is_far_ = true;
  // Since the last verdict.
  std::int64_t line_count_ = 0;
  std::int64_t took_ns_ = 0;
  // Far receivers may seem near, if what they have read has left their cache; only after changing
  // over the truth comes out. So each time that was a mistake, it takes more to be convinced again.
  int patience_ = 1;
  int contrary_count_ = 0;  // verdicts in a row that say near while far is believed
  int near_count_ = 0;      // verdicts in a row that confirm near
};

}  // namespace polyrail::shm
