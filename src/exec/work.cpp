#include <polyrail/work.hpp>

#include "src/exec/engine.hpp"
#include "src/exec/operation.hpp"

namespace polyrail {

Work::Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}
Work::Work(Status outcome) : outcome_(std::move(outcome)) {}

bool Work::is_done() {
  if (state_ == nullptr) return true;
  if (state_->operation.is_done.load(std::memory_order_acquire)) return true;
  state_->engine->poll();
  return state_->operation.is_done.load(std::memory_order_acquire);
}

Status Work::wait() {
  if (state_ == nullptr) return outcome_;
  state_->engine->wait(*state_);
  return state_->operation.outcome;
}

void WorkState::complete(Status status) {
  after.clear();
  operation.complete(std::move(status));
  std::vector<std::shared_ptr<Waker>> wakers;
  {
    const std::lock_guard lock(mutex_);
    wakers.swap(wakers_);
  }
  for (const auto& waker : wakers) waker->wake();
}

void WorkState::wake_when_done(std::shared_ptr<Waker> waker) {
  {
    const std::lock_guard lock(mutex_);
    // If it becomes done behind this look, complete() has yet to come by for the list.
    if (!operation.is_done.load(std::memory_order_acquire)) {
      wakers_.push_back(std::move(waker));
      return;
    }
  }
  waker->wake();
}

}  // namespace polyrail
