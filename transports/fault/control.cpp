#include "transports/fault/control.hpp"

#include <utility>

#include "src/base/sleep_set.hpp"

namespace polyrail {

template <typename Change>
void FaultControl::change(const Change& change) {
  const std::lock_guard lock(mutex_);
  change(orders_);
  version_.fetch_add(1, std::memory_order_release);
  for (const int descriptor : event_descriptors_) raise_event(descriptor);
}

void FaultControl::set_rate(double bytes_per_s) {
  change([&](Orders& orders) { orders.bytes_per_s = bytes_per_s; });
}

void FaultControl::set_black_hole(BlackHole hole) {
  change([&](Orders& orders) { orders.hole = hole; });
}

void FaultControl::fail(Status why) {
  change([&](Orders& orders) { orders.failure = std::move(why); });
}

void FaultControl::fail_peer(int peer, Status why) {
  change([&](Orders& orders) { orders.peer_failures.insert_or_assign(peer, std::move(why)); });
}

FaultControl::Orders FaultControl::orders() const {
  const std::lock_guard lock(mutex_);
  return orders_;
}

void FaultControl::attach(int event_descriptor) {
  const std::lock_guard lock(mutex_);
  event_descriptors_.push_back(event_descriptor);
}

void FaultControl::detach(int event_descriptor) {
  const std::lock_guard lock(mutex_);
  std::erase(event_descriptors_, event_descriptor);
}

}  // namespace polyrail
