// Operation: one collective call on its way through the engine.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <polyrail/status.hpp>
#include <polyrail/work.hpp>

#include "src/exec/bound_plan.hpp"
#include "src/exec/executor.hpp"

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

// What a Work shares with the engine: the operation and who can move it on.
class WorkState {
 public:
  explicit WorkState(std::shared_ptr<Engine> mover) : engine(std::move(mover)) {}
  Operation operation;
  // Shared so that a Work may outlive its communicator.
  std::shared_ptr<Engine> engine;
  double weights = 0;                // of kWeightedAvg: the sum, once it is known
  std::shared_ptr<WorkState> keeps;  // whose memory this operation writes: lives as long
};

}  // namespace polyrail
