// Group: calls that are started together, so that one thread may make those of several ranks.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <polyrail/call.hpp>
#include <polyrail/communicator.hpp>
#include <polyrail/message.hpp>
#include <polyrail/status.hpp>
#include <polyrail/stream.hpp>
#include <polyrail/work.hpp>

namespace polyrail {

// One thread at a time. Communicators, streams and buffers stay valid until end(). All ranks of a
// communicator make the same calls in their groups, with streams or without alike. The calls of one
// group run in any order as far as buffers are concerned: none may take what another one gives.
class Group final {
 public:
  Group() = default;
  // As end(), whose failure is lost.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Records a call: started at end() and waited for there, or given to a stream there. Wrong
  // arguments are reported here, and once more by end(), which then starts nothing.
  Status add(Communicator& communicator, const Call& call, Stream* stream = nullptr);
  // The same for a send or receive. Those of one communicator and stream are started together,
  // where the first of them stands, and are one operation of the stream: they may come in any
  // order.
  Status add(Communicator& communicator, const Message& message, Stream* stream = nullptr);
  // The same for anything else that is no collective: the other ranks may add less or more of it,
  // since it does not come between neighbours.
  Status add(Communicator& communicator, Stream::Starter starter, Stream* stream = nullptr);
  // A call that was refused before it came here: end() starts nothing and returns the failure.
  void refuse(const Status& failure);

  // Starts everything, on each communicator in the order given, then waits for what has no stream.
  // Neighbours on a communicator that fits_together() (fuse.hpp) allows become one operation. The
  // first failure. The group is empty then.
  Status end();

 private:
  struct Entry {
    Communicator* communicator;
    std::optional<Call> call;
    std::optional<Message> message;
    Stream::Starter starter;  // if it is neither a fusible call nor a message
    bool is_collective;
    Stream* stream;
  };
  // The entries that became one operation, and whose it is.
  struct Batch {
    Communicator* communicator;
    std::vector<Call> calls;
    std::vector<Message> messages;
    Stream::Starter starter;
    Stream* stream;
  };
  std::vector<Batch> make_batches() const;

  std::vector<Entry> entries_;
  Status refusal_;
};

}  // namespace polyrail
