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
  state_->engine->wait(state_->operation);
  return state_->operation.outcome;
}

}  // namespace polyrail
