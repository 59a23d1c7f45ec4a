// Work: an operation that may not have finished yet.
#pragma once

#include <memory>

#include <polyrail/status.hpp>

namespace polyrail {

class WorkState;  // in src/exec

// Handle; copies stand for the same operation. Dropping it does not cancel the operation; the
// communicator's destructor waits. Different threads may use different copies.
class [[nodiscard]] Work {
 public:
  Work() = default;
  explicit Work(std::shared_ptr<WorkState> state);
  // A work that is over with the given outcome.
  explicit Work(Status outcome);
  // True once the outcome is known. Any thread; makes progress if no thread of the library does.
  bool is_done();
  // Blocks until the outcome is known and returns it; again at once when called again.
  Status wait();

  // For the library: null if the operation never began because it was refused.
  const std::shared_ptr<WorkState>& state() const { return state_; }

 private:
  // Shared by the callers and the engine that completes it.
  std::shared_ptr<WorkState> state_;
  Status outcome_;
};

}  // namespace polyrail
