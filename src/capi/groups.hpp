// The open group of a thread, between polyrailGroupStart and polyrailGroupEnd.
#pragma once

#include <functional>
#include <vector>

#include "src/capi/shell.hpp"

namespace polyrail::capi {

class OpenGroup final {
 public:
  // This thread's, or null.
  static OpenGroup* find();

  // A call or message on `comm`: see Group::add.
  Status add(polyrailComm& comm, const Call& call, polyrailStream* stream);
  Status add(polyrailComm& comm, const Message& message, polyrailStream* stream);
  // Something that blocks until other ranks do the same. All are run at once, each on a thread of
  // its own, before the calls are started; those with the same key one after the other.
  void add_blocking(const void* key, std::function<Status()> body);
  // A call that was refused: nothing of the group will be started.
  void refuse(const Status& failure) {
    if (refusal_.is_ok()) refusal_ = failure;
  }

  Status end();
  int depth = 0;

 private:
  Status run_blocking();
  void note(polyrailComm& comm);

  Group group_;
  Status refusal_;
  std::vector<polyrailComm*> comms_;  // each once
  struct Blocking {
    const void* key;
    std::vector<std::function<Status()>> bodies;
  };
  std::vector<Blocking> blocking_;
};

// Runs a call: records it if a group is open, else gives it to the stream or runs it to its end.
Status submit(polyrailComm& comm, const Call& call, polyrailStream* stream);
Status submit(polyrailComm& comm, const Message& message, polyrailStream* stream);

// Runs body(), which starts something on a communicator; what it finds wrong ends an open group.
template <typename Body>
polyrailResult_t start_on(polyrailComm* comm, const char* function, Body&& body) {
  const polyrailResult_t result = with(comm, function, [&](Communicator&) { return body(); });
  if (result != polyrailSuccess) {
    if (OpenGroup* group = OpenGroup::find()) {
      group->refuse({static_cast<StatusCode>(result), last_error()});
    }
  }
  return result;
}

}  // namespace polyrail::capi
