// Who moves the engine on: callers inside run() and wait(), or its own thread; and what an
// operation waits for before it begins, in other engines too.
#include "src/base/clock.hpp"
#include "src/exec/engine.hpp"

namespace polyrail {
namespace {

constexpr int kMostPolled = 16;  // engines that wait for one another, in a poll

}  // namespace

Status Engine::run(Operation& operation) {
  if (has_failed_.load(std::memory_order_acquire)) return failure();
  if (options_.progress == "thread" || is_thread_busy()) {
    // Behind asynchronous work, or on the engine's thread: as a queued operation.
    auto work = std::make_shared<WorkState>(nullptr);
    work->operation.plan = operation.plan;
    work->operation.buffers = operation.buffers;
    work->operation.user = operation.user;
    work->operation.factor = operation.factor;
    work->operation.divisor = operation.divisor;
    submit(work);
    wait(*work);
    return work->operation.outcome;
  }
  operation.number = ++submitted_number_ & ~Messages::kFlag;
  take();
  begin(operation);
  while (!operation.is_done.load(std::memory_order_acquire)) {
    if (!step()) idle();
  }
  release();
  return operation.outcome;
}

void Engine::submit(std::shared_ptr<WorkState> work) {
  const std::lock_guard lock(queue_mutex_);
  if (has_failed_.load(std::memory_order_relaxed)) {
    work->complete(failure_);
    return;
  }
  work->operation.number = ++submitted_number_ & ~Messages::kFlag;
  queue_.push_back(std::move(work));
  queued_count_.fetch_add(1, std::memory_order_seq_cst);
  if (thread_drives()) start_thread();
}

void Engine::thread_main() {
  for (;;) {
    {
      std::unique_lock lock(queue_mutex_);
      queue_filled_.wait(lock, [&] { return is_stopping_ || (is_thread_busy() && !is_closed_); });
      if (is_stopping_) return;
    }
    for (int count; (count = wanted_.load()) != 0;) wanted_.wait(count);
    take();
    is_thread_holding_ = true;
    while (wanted_.load(std::memory_order_relaxed) == 0 && has_business()) {
      if (!step() && has_business()) idle();
    }
    is_thread_holding_ = false;
    release();
  }
}

bool Engine::take_next() {
  if (next_work_ == nullptr) {
    const std::lock_guard lock(queue_mutex_);
    if (queue_.empty()) return false;
    next_work_ = std::move(queue_.front());
    queue_.pop_front();
  }
  if (!may_begin(*next_work_)) return true;
  if (is_waiting_) {
    is_waiting_ = false;
    idle_policy_.on_wait_end(now_us());
  }
  current_work_ = std::move(next_work_);
  next_work_ = nullptr;
  if (current_work_->on_begin) current_work_->on_begin();
  begin(current_work_->operation);
  return true;
}

bool Engine::may_begin(WorkState& work) {
  if (withdrawal_us_ > 0) return false;                          // step() ends it
  if (has_failed_.load(std::memory_order_relaxed)) return true;  // begin() ends it
  for (; !work.after.empty(); work.after.pop_back()) {
    Work& other = work.after.back();
    const std::shared_ptr<WorkState>& state = other.state();
    if (state != nullptr && !state->operation.is_done.load(std::memory_order_acquire)) {
      if (!work.is_watching) state->wake_when_done(waker_);
      work.is_watching = true;
      return false;
    }
    work.is_watching = false;
    const Status outcome = other.wait();
    if (outcome.is_ok()) continue;
    fail(Status(outcome.code(), "rank " + std::to_string(rank_) + ": operation " +
                                    std::to_string(work.operation.number) +
                                    " was to follow one that failed: " + outcome.message()));
    return false;
  }
  return true;
}

std::shared_ptr<WorkState> Engine::blocker() const {
  if (has_failed_.load(std::memory_order_relaxed)) return nullptr;
  if (abort_requested_.load(std::memory_order_acquire)) return nullptr;  // for step()
  const auto blocker_of = [](const WorkState& work) -> std::shared_ptr<WorkState> {
    if (work.after.empty()) return nullptr;
    const std::shared_ptr<WorkState>& state = work.after.back().state();
    if (state == nullptr || state->operation.is_done.load(std::memory_order_acquire))
      return nullptr;
    return state->engine->is_moved_by_callers() ? state : nullptr;
  };
  if (next_work_ != nullptr) {
    if (auto state = blocker_of(*next_work_)) return state;
  }
  // While this engine has something of its own to move on, that comes first.
  if (current_ != nullptr || next_work_ != nullptr || messages_.has_works()) return nullptr;
  for (const std::shared_ptr<MessageWork>& work : deferred_) {
    if (auto state = blocker_of(*work)) return state;
  }
  return nullptr;
}

bool Engine::Wanted::is_over() const {
  for (const Wanted* wanted = this; wanted != nullptr; wanted = wanted->outer) {
    if (wanted->work->operation.is_done.load(std::memory_order_acquire)) return true;
  }
  return false;
}

bool Engine::Wanted::has(const Engine* engine) const {
  for (const Wanted* wanted = this; wanted != nullptr; wanted = wanted->outer) {
    if (wanted->work->engine.get() == engine) return true;
  }
  return false;
}

void Engine::wait(WorkState& work) {
  if (is_moved_by_callers()) {
    wait({&work, nullptr});
    return;
  }
  std::atomic<bool>& is_done = work.operation.is_done;
  while (!is_done.load(std::memory_order_acquire)) is_done.wait(false, std::memory_order_acquire);
}

// Only the engines that callers move get here. It goes from engine to engine at most once each;
// where messages and operations make engines wait for one another, the first of them moves on what
// it can.
void Engine::wait(const Wanted& wanted) {
  for (const Wanted* outer = wanted.outer; outer != nullptr; outer = outer->outer) {
    outer->work->wake_when_done(waker_);
  }
  while (!wanted.is_over()) {
    if (thread_drives()) {  // since a window was made
      wanted.work->operation.is_done.wait(false, std::memory_order_acquire);
      continue;
    }
    take_from_thread();
    const std::shared_ptr<WorkState> other = drive(wanted);
    release();
    // An abort() that found the engine held just now counts on this thread. Both sides write the
    // flag, so either this sees the request or abort() sees the engine free.
    bool is_aborted = false;
    abort_requested_.compare_exchange_strong(is_aborted, false, std::memory_order_acq_rel);
    if (other == nullptr || is_aborted) continue;
    if (wanted.has(other->engine.get())) return;
    other->engine->wait({other.get(), &wanted});
  }
}

void Engine::poll(int depth) {
  if (thread_drives() || !try_take()) return;
  if (has_business()) step();
  const std::shared_ptr<WorkState> other = blocker();
  release();
  if (other != nullptr && depth < kMostPolled) other->engine->poll(depth + 1);
}

// Until the work is over or this thread is needed at another engine: the work to move on there.
std::shared_ptr<WorkState> Engine::drive(const Wanted& wanted) {
  while (!wanted.is_over()) {
    if (!has_business()) return nullptr;
    if (wanted.is_over()) break;
    const bool has_moved = step();
    if (std::shared_ptr<WorkState> other = blocker()) return other;
    if (!has_moved && !wanted.is_over()) idle();
  }
  return nullptr;
}

}  // namespace polyrail
