#include "src/exec/small_calls.hpp"

#include <cstring>
#include <span>

#include "src/base/assert.hpp"

namespace polyrail {

void SmallCalls::begin(const BoundPlan& plan, const Call& call, const Arithmetic& arithmetic,
                       const std::byte* input) {
  PR_ASSERT(!is_running_);
  plan_ = &plan;
  arithmetic_ = arithmetic;
  call_ = call;
  seen_ = 0;
  is_running_ = true;
  std::memcpy(message_.data(), &call, sizeof(call));
  const std::size_t bytes = plan.input_bytes;
  if (bytes != 0) std::memcpy(message_.data() + sizeof(call), input, bytes);
  message_bytes_ = sizeof(call) + bytes;
  is_posted_ = false;
  is_last_seen_ = is_needed_;
  is_needed_.fill(plan.spec.collective == Collective::kBarrier);
  for (const BoundTake& take : plan.takes) {
    for (int rank = take.first; rank < take.end; ++rank) is_needed_[rank] = true;
  }
  (void)try_post();
}

bool SmallCalls::try_post() {
  if (!is_posted_ && exchange_.can_post() && !last_difference()) {
    exchange_.post(std::span(message_.data(), message_bytes_),
                   std::span(is_needed_.data(), static_cast<std::size_t>(rank_count_)));
    is_posted_ = true;
  }
  return is_posted_;
}

bool SmallCalls::try_finish(std::byte* output) {
  if (!try_post()) return false;
  for (; seen_ < rank_count_; ++seen_) {
    if (!is_needed_[seen_]) continue;
    const std::byte* message = seen_ == rank_ ? message_.data() : exchange_.poll(seen_);
    if (message == nullptr || call_of(message) != call_) return false;
    sources_[seen_] = message + sizeof(Call);
  }
  std::array<const void*, kMostRanks> operands;
  for (const BoundTake& take : plan_->takes) {
    const auto count = static_cast<std::size_t>(take.end - take.first);
    for (std::size_t i = 0; i < count; ++i) {
      operands[i] = static_cast<const std::byte*>(sources_[take.first + i]) + take.input_offset;
    }
    arithmetic_.reduce_many(std::span(operands.data(), count), output + take.output_offset,
                            take.bytes, /*is_final=*/true);
  }
  is_running_ = false;
  last_call_ = call_;
  exchange_.finish();
  return true;
}

std::optional<SmallCalls::Difference> SmallCalls::last_difference() const {
  for (int peer = 0; peer < rank_count_ && last_call_; ++peer) {
    if (peer == rank_ || is_last_seen_[peer]) continue;
    const std::byte* message = exchange_.poll(peer);
    if (message != nullptr && call_of(message) != *last_call_) {
      return Difference{peer, call_of(message)};
    }
  }
  return std::nullopt;
}

std::optional<SmallCalls::Difference> SmallCalls::difference(std::uint32_t number) const {
  if (is_running_ && !is_posted_) {
    if (const auto last = last_difference()) return last;
  }
  for (int peer = 0; peer < rank_count_; ++peer) {
    if (peer == rank_) continue;
    const bool has_begun = is_running_ && is_posted_;
    const std::byte* message = has_begun ? exchange_.poll(peer) : exchange_.peek(peer);
    if (message == nullptr) continue;
    const Call call = call_of(message);
    if (is_running_ ? call != call_ : call.number == number) return Difference{peer, call};
  }
  return std::nullopt;
}

std::string SmallCalls::missing() const {
  std::string text;
  for (int peer = 0; peer < rank_count_; ++peer) {
    if (peer == rank_ || (is_posted_ && !is_needed_[peer])) continue;
    if ((is_posted_ ? exchange_.poll(peer) : exchange_.peek(peer)) != nullptr) continue;
    text += (text.empty() ? "what rank " : ", rank ") + std::to_string(peer);
  }
  return text + " contributes";
}

SmallCalls::Call SmallCalls::call_of(const std::byte* message) {
  Call call;
  std::memcpy(&call, message, sizeof(call));
  return call;
}

}  // namespace polyrail
