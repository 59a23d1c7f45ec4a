#include "src/capi/groups.hpp"

#include <algorithm>

namespace polyrail::capi {
namespace {

// Groups are a thread's, as in NCCL.
thread_local std::unique_ptr<OpenGroup> t_group;

}  // namespace

OpenGroup* OpenGroup::find() {
  return t_group.get();
}

Status OpenGroup::add(polyrailComm& comm, const Call& call, polyrailStream* stream) {
  note(comm);
  return group_.add(comm.creation->communicator(), call,
                    stream == nullptr ? nullptr : &stream->stream);
}

Status OpenGroup::add(polyrailComm& comm, const Message& message, polyrailStream* stream) {
  note(comm);
  return group_.add(comm.creation->communicator(), message,
                    stream == nullptr ? nullptr : &stream->stream);
}

void OpenGroup::note(polyrailComm& comm) {
  if (std::find(comms_.begin(), comms_.end(), &comm) == comms_.end()) comms_.push_back(&comm);
}

void OpenGroup::add_blocking(const void* key, std::function<Status()> body) {
  const auto same = std::find_if(blocking_.begin(), blocking_.end(),
                                 [&](const Blocking& other) { return other.key == key; });
  Blocking& row = same != blocking_.end() ? *same : blocking_.emplace_back(Blocking{key, {}});
  row.bodies.push_back(std::move(body));
}

Status OpenGroup::run_blocking() {
  std::vector<Status> outcomes(blocking_.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < blocking_.size(); ++i) {
    threads.emplace_back([&, i] {
      for (const auto& body : blocking_[i].bodies) {
        Status outcome = catch_all("polyrailGroupEnd", body);
        if (outcomes[i].is_ok()) outcomes[i] = std::move(outcome);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Status& outcome : outcomes) {
    if (!outcome.is_ok()) return std::move(outcome);
  }
  return ok();
}

Status OpenGroup::end() {
  std::vector<std::unique_ptr<InCall>> in_calls;
  for (polyrailComm* comm : comms_) in_calls.push_back(std::make_unique<InCall>(*comm));
  if (refusal_.is_ok()) refuse(run_blocking());
  if (!refusal_.is_ok()) group_.refuse(refusal_);
  Status outcome = group_.end();
  for (polyrailComm* comm : comms_) (void)report(comm, outcome);
  return outcome;
}

Status submit(polyrailComm& comm, const Call& call, polyrailStream* stream) {
  if (OpenGroup* group = OpenGroup::find()) return group->add(comm, call, stream);
  Communicator& communicator = comm.creation->communicator();
  return stream == nullptr ? communicator.run(call) : stream->stream.start(communicator, call);
}

Status submit(polyrailComm& comm, const Message& message, polyrailStream* stream) {
  if (OpenGroup* group = OpenGroup::find()) return group->add(comm, message, stream);
  Communicator& communicator = comm.creation->communicator();
  const std::span messages(&message, 1);
  return stream == nullptr ? communicator.run(messages)
                           : stream->stream.start(communicator, messages);
}

}  // namespace polyrail::capi

using namespace polyrail;
using namespace polyrail::capi;

extern "C" {

polyrailResult_t polyrailGroupStart() {
  return guard(nullptr, __func__, []() -> Status {
    if (t_group == nullptr) t_group = std::make_unique<OpenGroup>();
    ++t_group->depth;
    return ok();
  });
}

polyrailResult_t polyrailGroupEnd() {
  return guard(nullptr, __func__, []() -> Status {
    if (t_group == nullptr) {
      return {StatusCode::kInvalidUsage, "polyrailGroupEnd: this thread has no open group"};
    }
    if (--t_group->depth > 0) return ok();
    // Closed first: what it starts is not to be recorded in it.
    const std::unique_ptr<OpenGroup> group = std::move(t_group);
    return group->end();
  });
}

}  // extern "C"
