#include "transports/fault/egress.hpp"

#include <algorithm>

#include "transports/fault/endpoint.hpp"

namespace polyrail::fault {

void Egress::set_rate(double bytes_per_s, Time now) {
  bucket_.advance(now);
  bucket_.set_rate(bytes_per_s);
}

void Egress::set_shut(bool is_shut, Time now) {
  bucket_.advance(now);
  if (is_shut_) bucket_.settle();
  is_shut_ = is_shut;
}

bool Egress::pass(std::uint64_t bytes, Time now) {
  if (is_shut_ || !turns_.empty()) return false;
  bucket_.advance(now);
  bucket_.settle();
  if (!bucket_.take(bytes)) return false;
  sent_bytes_ += bytes;
  return true;
}

void Egress::pass_back(std::uint64_t bytes) {
  bucket_.give_back(bytes);
  sent_bytes_ -= bytes;
}

void Egress::wait(FaultEndpoint& endpoint, std::uint64_t bytes, Time now) {
  if (turns_.empty()) {
    bucket_.advance(now);
    bucket_.settle();
  }
  turns_.push_back({&endpoint, bytes});
}

bool Egress::advance(Time now) {
  if (is_shut_ || turns_.empty()) return false;
  bucket_.advance(now);
  bool has_moved = false;
  while (!turns_.empty() && bucket_.take(turns_.front().bytes)) {
    const auto turn = turns_.front();
    turns_.pop_front();
    sent_bytes_ += turn.bytes;
    turn.endpoint->depart(now);
    has_moved = true;
  }
  if (turns_.empty()) bucket_.settle();
  return has_moved;
}

Time Egress::due() const {
  if (is_shut_ || turns_.empty()) return kNever;
  return bucket_.ready_at(turns_.front().bytes);
}

std::uint64_t Egress::queue_bytes() const {
  constexpr std::uint64_t kLeastBytes = 512 * 1024;
  constexpr double kSeconds = 0.01;
  return std::max(kLeastBytes, static_cast<std::uint64_t>(bucket_.bytes_per_s() * kSeconds));
}

}  // namespace polyrail::fault
