#include "transports/shm/distance.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "transports/shm/layout.hpp"
#include "transports/shm/tuning.hpp"

namespace polyrail::shm {
namespace {

constexpr std::size_t kLeastBytes = 1024;          // of less the clock says nothing
constexpr std::int64_t kLinesPerVerdict = 4 * 64;  // four times a full probe

constexpr int kMostPatience = 16;
constexpr int kNearForGood = 8;

void touch(const std::byte* source, std::size_t bytes) {
  const volatile std::byte* const place = source;
  for (std::size_t i = 0; i < bytes; i += kLineBytes) static_cast<void>(place[i]);
}

}  // namespace

void DistanceMeter::copy(std::byte* target, const std::byte* source, std::size_t bytes) {
  using Clock = std::chrono::steady_clock;
  if (bytes < kLeastBytes) {
    std::memcpy(target, source, bytes);
    return;
  }
  touch(source, bytes);  // how far away the source is does not matter here
  const auto begin = Clock::now();
  std::memcpy(target, source, bytes);
  // A store that orders all others waits until they are done, not only queued.
  static_cast<void>(std::atomic<int>(0).exchange(1));
  const std::int64_t took_ns = std::chrono::nanoseconds(Clock::now() - begin).count();
  const auto lines = static_cast<std::int64_t>(bytes / kLineBytes);
  line_count_ += lines;
  took_ns_ += std::min(took_ns, 4 * kSeemsNearLineNs * lines);  // it may have been interrupted
  if (line_count_ < kLinesPerVerdict) return;
  judge(took_ns_ > (is_far_ ? kSeemsNearLineNs : kIsNearLineNs) * line_count_);
  line_count_ = took_ns_ = 0;
}

void DistanceMeter::judge(bool seems_far) {
  if (seems_far == is_far_) {
    contrary_count_ = 0;
    if (!is_far_ && ++near_count_ == kNearForGood) patience_ = 1;
    return;
  }
  if (is_far_ && ++contrary_count_ < patience_) return;
  if (!is_far_) patience_ = std::min(2 * patience_, kMostPatience);
  is_far_ = seems_far;
  contrary_count_ = near_count_ = 0;
}

}  // namespace polyrail::shm
