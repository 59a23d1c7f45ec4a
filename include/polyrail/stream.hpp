// Stream: operations that run one after the other, whatever communicators they belong to; Event: a
// point in a stream. Both of host work; nothing here blocks unless it says so.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include <polyrail/call.hpp>
#include <polyrail/communicator.hpp>
#include <polyrail/message.hpp>
#include <polyrail/status.hpp>
#include <polyrail/work.hpp>

namespace polyrail {

// What a stream had been given when the event was recorded. A value; one made by default is done.
class Event {
 public:
  Event() = default;
  explicit Event(std::vector<Work> works) : works_(std::move(works)) {}
  bool is_done();
  // Blocks until it is done; the first failure.
  Status wait();
  const std::vector<Work>& works() const { return works_; }

 private:
  std::vector<Work> works_;
};

// Any thread, though calls on one communicator must not overlap, whichever streams they go to.
// Different streams run beside each other. All ranks give a stream the calls of their communicators
// in the same order. Operations still under way when a stream ends run on.
class Stream final {
 public:
  // Starts an operation that begins after the given works: Communicator::start or the like.
  using Starter = std::function<Work(std::span<const Work> after)>;

  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Runs a call after everything given to this stream before. A call with a wrong argument is
  // refused and leaves no trace. After a failure in the stream everything that follows fails too,
  // and with it the communicators it belongs to, on all ranks.
  Status start(Communicator& communicator, const Call& call);
  Status start(const Starter& starter);
  // Messages, which are started together.
  Status start(Communicator& communicator, std::span<const Message> messages);
  // What is given from now on begins after the event.
  void wait(const Event& event);
  Event record() const;

  // Whether everything given so far is over.
  bool is_done();
  // Blocks until everything given so far is over; the first failure there ever was.
  Status synchronize();
  // The first failure seen so far.
  Status failure();

 private:
  void note_failures();

  mutable std::mutex mutex_;
  std::vector<Work> tail_;  // what the next operation has to wait for; guarded
  Status failure_;          // guarded
};

}  // namespace polyrail
