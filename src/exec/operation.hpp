// Operation: one collective call on its way through the engine.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <polyrail/status.hpp>
#include <polyrail/work.hpp>

#include "src/exec/bound_plan.hpp"
#include "src/exec/executor.hpp"
#include "src/exec/waker.hpp"

namespace polyrail {

class Engine;

struct Operation {
  std::shared_ptr<const BoundPlan> plan;  // shared with the cache, which may drop it meanwhile
  Executor::Buffers buffers;              // scratch is the engine's to fill in
  const UserOp* user = nullptr;           // of kUser; the caller's
  // Of kPreMulSum and kWeightedAvg: the input is multiplied by factor / *divisor before it takes
  // part.
  double factor = 1;
  const double* divisor = nullptr;
  std::uint32_t number = 0;
  Status outcome;  // valid once is_done
  std::atomic<bool> is_done{false};

  void complete(Status status) {
    outcome = std::move(status);
    is_done.store(true, std::memory_order_release);
    is_done.notify_all();
  }
};

// What a Work shares with the engine: the operation, who can move it on, and what goes before it.
class WorkState {
 public:
  explicit WorkState(std::shared_ptr<Engine> mover) : engine(std::move(mover)) {}
  Operation operation;
  // Shared so that a Work may outlive its communicator.
  std::shared_ptr<Engine> engine;
  double weights = 0;                // of kWeightedAvg: the sum, once it is known
  std::shared_ptr<WorkState> keeps;  // whose memory this operation writes: lives as long
  // Works that must be done before this begins. The engine's from submit() on; it takes out what is
  // done, from the back.
  std::vector<Work> after;
  bool is_watching = false;  // the engine will be woken by the last of `after`
  // Run by the engine just before the operation begins, and when it has ended well.
  std::function<void()> on_begin;
  std::function<void()> on_success;

  // Engine's thread, which must hold the state.
  void complete(Status status);
  // Wakes once the operation is done; at once if it is. Any thread.
  void wake_when_done(std::shared_ptr<Waker> waker);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Waker>> wakers_;  // guarded
};

}  // namespace polyrail
