#include <polyrail/stream.hpp>

namespace polyrail {

bool Event::is_done() {
  bool is_done = true;
  for (Work& work : works_) is_done &= work.is_done();  // each of them may need a push
  return is_done;
}

Status Event::wait() {
  Status first;
  for (Work& work : works_) {
    if (Status status = work.wait(); first.is_ok()) first = std::move(status);
  }
  return first;
}

Status Stream::start(Communicator& communicator, const Call& call) {
  return start([&](std::span<const Work> after) { return communicator.start(call, after); });
}

Status Stream::start(Communicator& communicator, std::span<const Message> messages) {
  return start([&](std::span<const Work> after) { return communicator.start(messages, after); });
}

Status Stream::start(const Starter& starter) {
  // Held over the start, so that the order here and that of the communicator are the same.
  const std::lock_guard lock(mutex_);
  note_failures();
  Work work = starter(tail_);
  // Without a state it was refused.
  if (work.state() == nullptr) return work.wait();
  tail_.assign(1, std::move(work));
  return ok();
}

void Stream::wait(const Event& event) {
  const std::lock_guard lock(mutex_);
  note_failures();
  for (Work work : event.works()) {
    if (!work.is_done() || !work.wait().is_ok()) tail_.push_back(std::move(work));
  }
}

Event Stream::record() const {
  const std::lock_guard lock(mutex_);
  return Event(tail_);
}

bool Stream::is_done() {
  return record().is_done();
}

Status Stream::synchronize() {
  (void)record().wait();
  return failure();
}

Status Stream::failure() {
  const std::lock_guard lock(mutex_);
  note_failures();
  return failure_;
}

// Keeps what failed in the tail, so that nothing begins after it.
void Stream::note_failures() {
  std::erase_if(tail_, [&](Work& work) {
    if (!work.is_done()) return false;
    const Status status = work.wait();
    if (failure_.is_ok()) failure_ = status;
    return status.is_ok();
  });
}

}  // namespace polyrail
