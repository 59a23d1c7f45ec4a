#include "src/exec/small_calls.hpp"

#include <cstring>
#include <span>

#include "kernels/kernels.hpp"
#include "src/base/assert.hpp"

namespace polyrail {

void SmallCalls::begin(const CollectiveSpec& spec, const Call& call, const std::byte* input) {
  PR_ASSERT(!is_running_);
  spec_ = spec;
  call_ = call;
  seen_ = 0;
  is_running_ = true;
  std::memcpy(message_.data(), &call, sizeof(call));
  const std::size_t bytes = spec.bytes();
  if (bytes != 0) std::memcpy(message_.data() + sizeof(call), input, bytes);
  exchange_.post(std::span(message_.data(), sizeof(call) + bytes));
}

bool SmallCalls::try_finish(std::byte* output) {
  for (; seen_ < rank_count_; ++seen_) {
    const std::byte* message = seen_ == rank_ ? message_.data() : exchange_.poll(seen_);
    if (message == nullptr || call_of(message) != call_) return false;
    sources_[seen_] = message + sizeof(Call);
  }
  Finish finish;
  if (spec_.op == ReduceOp::kAvg) finish.divide_by = rank_count_;
  if (spec_.count != 0) {
    reduce_many(spec_.type, spec_.op, std::span(sources_.data(), rank_count_), output, spec_.count,
                finish);
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
