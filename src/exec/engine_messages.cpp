// What the engine does for messages and windows, which may come from other threads.
#include <cstring>

#include "src/base/assert.hpp"
#include "src/base/clock.hpp"
#include "src/exec/engine.hpp"

namespace polyrail {

void Engine::start_thread() {
  if (!thread_.joinable()) thread_ = std::thread([this] { thread_main(); });
  queue_filled_.notify_one();
  wake();
}

void Engine::wake() {
  if (is_asleep_.load(std::memory_order_seq_cst)) waker_->wake();
}

void Engine::take_from_thread() {
  wanted_.fetch_add(1, std::memory_order_seq_cst);
  wake();
  take();
  wanted_.fetch_sub(1, std::memory_order_seq_cst);
  wanted_.notify_all();
}

void Engine::start_messages(std::shared_ptr<MessageWork> work) {
  if (!thread_drives()) {
    // Whoever waits will drive.
    take();
    if (has_failed_.load(std::memory_order_relaxed)) {
      work->complete(failure());
    } else {
      work->needs_thread = true;  // should there be one, later
      thread_duties_.fetch_add(1, std::memory_order_seq_cst);
      begin_messages(std::move(work), now_us());
    }
    release();
    return;
  }
  const std::lock_guard lock(queue_mutex_);
  if (has_failed_.load(std::memory_order_relaxed)) {
    work->complete(failure_);
    return;
  }
  if (is_closed_.load(std::memory_order_relaxed)) {
    work->complete(closed_status());
    return;
  }
  work->needs_thread = true;
  thread_duties_.fetch_add(1, std::memory_order_seq_cst);
  submitted_.push_back(std::move(work));
  submitted_count_.fetch_add(1, std::memory_order_seq_cst);
  start_thread();
}

Status Engine::run_messages(std::shared_ptr<MessageWork> work) {
  if (options_.progress == "thread" || (thread_drives() && is_thread_busy())) {
    start_messages(work);
    wait(*work);
    return work->operation.outcome;
  }
  take();
  if (has_failed_.load(std::memory_order_relaxed)) {
    work->complete(failure());
  } else {
    messages_.start(work, now_us());
  }
  const Wanted wanted{work.get(), nullptr};
  const std::shared_ptr<WorkState> other = drive(wanted);
  release();
  if (other != nullptr) wait(wanted);
  return work->operation.outcome;
}

void Engine::begin_messages(std::shared_ptr<MessageWork> work, double now_us) {
  if (may_begin(*work)) {
    messages_.start(std::move(work), now_us);
  } else {
    deferred_.push_back(std::move(work));
  }
}

void Engine::begin_deferred() {
  const double now = now_us();
  std::erase_if(deferred_, [&](std::shared_ptr<MessageWork>& work) {
    if (!may_begin(*work)) return false;
    messages_.start(std::move(work), now);
    return true;
  });
}

void Engine::add_window(std::shared_ptr<WindowMemory> window) {
  take_from_thread();
  messages_.add_window(std::move(window));
  release();
  const std::lock_guard lock(queue_mutex_);
  had_window_.store(true, std::memory_order_release);
  thread_duties_.fetch_add(1, std::memory_order_seq_cst);
  start_thread();
}

void Engine::remove_window(std::uint32_t id) {
  take_from_thread();
  if (!is_closed_.load(std::memory_order_relaxed)) {
    messages_.remove_window(id);
    const double now = now_us();
    for (Link* link : links_) {
      if (link != nullptr) link->pump(now);
    }
  }
  thread_duties_.fetch_sub(1, std::memory_order_seq_cst);
  release();
}

bool Engine::has_submissions() const {
  return submitted_count_.load(std::memory_order_seq_cst) != 0 ||
         (current_ == nullptr && next_work_ == nullptr &&
          queued_count_.load(std::memory_order_seq_cst) != 0 && !is_closing_) ||
         (is_thread_holding_ && wanted_.load(std::memory_order_seq_cst) != 0);
}

bool Engine::has_business() {
  // Some end as soon as they begin.
  while (current_ == nullptr && queued_count_.load(std::memory_order_acquire) != 0 && take_next() &&
         next_work_ == nullptr) {
  }
  if (current_ != nullptr || next_work_ != nullptr) return true;
  if (is_closing_) return false;
  return messages_.is_active() || !deferred_.empty() ||
         submitted_count_.load(std::memory_order_acquire) != 0;
}

void Engine::start_submitted() {
  std::vector<std::shared_ptr<MessageWork>> works;
  {
    const std::lock_guard lock(queue_mutex_);
    works.swap(submitted_);
    submitted_count_.store(0, std::memory_order_release);
  }
  const double now = now_us();
  for (auto& work : works) {
    if (has_failed_.load(std::memory_order_relaxed)) {
      complete(*work, failure());
    } else {
      begin_messages(std::move(work), now);
    }
  }
}

bool Engine::fail_if_late(double now_us) {
  if (now_us <= messages_.next_deadline_us() || has_failed_.load(std::memory_order_relaxed)) {
    return false;
  }
  std::string late = messages_.expired(now_us);
  if (late.empty()) return false;
  fail(Status(StatusCode::kTimeout, std::move(late)));
  return true;
}

void Engine::deliver_early(std::uint32_t operation) {
  early_.take(operation, [this](const EarlySlices::Slice& slice) {
    const Landing landing = on_slice(*slice.from, slice.header);
    switch (landing.how) {
      case Landing::How::kInto:
        if (slice.header.bytes != 0) {
          std::memcpy(landing.target, slice.bytes.get(), slice.header.bytes);
        }
        on_landed(*slice.from, slice.header);
        return;
      case Landing::How::kStream:
        on_bytes(*slice.from, slice.header, 0, {slice.bytes.get(), slice.header.bytes});
        return;
      case Landing::How::kDiscard:
        return;
      case Landing::How::kLater:
        break;
    }
    PR_ASSERT(false);  // its operation has begun
  });
}

void Engine::fail_if_waiting_for(int peer, const Status& why) {
  if (is_closing_ || links_[peer]->best_endpoint() != nullptr || !messages_.waits_for(peer)) return;
  fail(Status(StatusCode::kRemoteError,
              "rank " + std::to_string(peer) + " has left, but rank " + std::to_string(rank_) +
                  " waits for a message to or from it: " + why.message()));
}

void Engine::discard_incoming(int peer, std::uint32_t operation) {
  for (const Joint& joint : joints_) {
    if (joint.peer == peer) joint.endpoint->discard_incoming(operation);
  }
}

bool Engine::can_hear(int peer) const {
  return links_[peer]->best_endpoint() != nullptr;
}

bool Engine::can_reach(int peer) const {
  return can_hear(peer) && !has_left_[peer];
}

void Engine::complete(MessageWork& work, Status outcome) {
  if (work.needs_thread) thread_duties_.fetch_sub(1, std::memory_order_seq_cst);
  work.complete(std::move(outcome));
}

}  // namespace polyrail
