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
  exchange_.post(std::span(message_.data(), sizeof(call) + bytes));
}

bool SmallCalls::try_finish(std::byte* output) {
  for (; seen_ < rank_count_; ++seen_) {
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
  exchange_.finish();
  return true;
}

std::optional<SmallCalls::Difference> SmallCalls::difference(std::uint32_t number) const {
  for (int peer = 0; peer < rank_count_; ++peer) {
    if (peer == rank_) continue;
    const std::byte* message = is_running_ ? exchange_.poll(peer) : exchange_.peek(peer);
    if (message == nullptr) continue;
    const Call call = call_of(message);
    if (is_running_ ? call != call_ : call.number == number) return Difference{peer, call};
  }
  return std::nullopt;
}

std::string SmallCalls::missing() const {
  std::string text;
  for (int peer = 0; peer < rank_count_; ++peer) {
    if (peer == rank_ || exchange_.poll(peer) != nullptr) continue;
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
