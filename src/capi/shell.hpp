// What all files of the C API share: the handles, and how a Status leaves through the edge.
#pragma once

#include <polyrail/polyrail.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <polyrail/polyrail.hpp>

#include "src/capi/operators.hpp"

namespace polyrail::capi {

using MakeCommunicator = std::function<Result<std::unique_ptr<Communicator>>()>;

// A communicator on its way. Shared by the handle and the thread that makes it, of which either may
// go first.
class Creation final {
 public:
  void run(const MakeCommunicator& make);
  // Ends operations under way; one that is not made yet is dropped as soon as it is. Any thread.
  void abort();
  // kInProgress until it is over, then its outcome. Any thread.
  Status status() const;
  // Precondition: the status is kOk.
  Communicator& communicator() { return *communicator_; }

  // Calls under way: polyrailCommAbort waits until they have returned.
  void enter_call() { call_count_.fetch_add(1, std::memory_order_acq_rel); }
  void leave_call();
  void wait_for_calls();

 private:
  std::atomic<int> call_count_{0};
  std::mutex mutex_;
  bool is_unwanted_ = false;
  std::atomic<bool> is_over_{false};
  Status status_;                               // fixed once is_over_
  std::unique_ptr<Communicator> communicator_;  // the same
};

// Ranks of one process that one thread may end one after the other, though the end of each waits
// for the others: all but the last end in the background.
class Family final {
 public:
  void join();
  // Runs `end`, which ends a member.
  void leave(std::function<void()> end);

 private:
  std::mutex mutex_;
  int count_ = 0;                    // of members; guarded
  std::vector<std::thread> ending_;  // guarded
};

}  // namespace polyrail::capi

struct polyrailComm {
  polyrail::capi::Operators operators;  // stays until the communicator has ended
  std::shared_ptr<polyrail::capi::Creation> creation = std::make_shared<polyrail::capi::Creation>();
  std::thread creator;  // if it was made in the background
  std::shared_ptr<polyrail::capi::Family>
      family;  // of the ranks of one polyrailCommInitAll, or null
  polyrail::Options options;
  std::mutex error_mutex;
  std::string last_error;  // guarded: a watchdog may ask while another thread is in a call
};

struct polyrailStream {
  polyrail::Stream stream;
};

namespace polyrail::capi {

// Notes the sentence of a failure for polyrailGetLastError; `comm` may be null.
polyrailResult_t report(polyrailComm* comm, const Status& status);
// Of this thread's last failure.
const char* last_error();

inline Status invalid(const char* function, const std::string& cause) {
  return {StatusCode::kInvalidArgument, std::string(function) + ": " + cause};
}

// The Status that `body` returns, or one for what it throws.
template <typename Body>
Status catch_all(const char* function, Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return {StatusCode::kSystemError, std::string(function) + ": out of memory"};
  } catch (const std::exception& error) {
    return {StatusCode::kInternalError, std::string(function) + ": " + error.what()};
  }
}

template <typename Body>
polyrailResult_t guard(polyrailComm* comm, const char* function, Body&& body) {
  return report(comm, catch_all(function, std::forward<Body>(body)));
}

// Says for its life that a call on the communicator is under way.
class InCall final {
 public:
  explicit InCall(polyrailComm& comm) : creation_(comm.creation) { creation_->enter_call(); }
  ~InCall() { creation_->leave_call(); }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  // Shared because the handle may be gone once the call is known to be over.
  std::shared_ptr<Creation> creation_;
};

// Whether calls may be made: kInvalidUsage while the communicator is being made.
Status check_ready(const char* function, const polyrailComm& comm);

// Runs body(Communicator&) for a call on a communicator that must be there and ready.
template <typename Body>
polyrailResult_t with(polyrailComm* comm, const char* function, Body&& body) {
  if (comm == nullptr) return report(nullptr, invalid(function, "comm is null"));
  const InCall in_call(*comm);
  return guard(comm, function, [&]() -> Status {
    if (Status status = check_ready(function, *comm); !status.is_ok()) return status;
    return body(comm->creation->communicator());
  });
}

// The element type behind a number of the C API; an error names the function.
Result<DataType> to_type(const char* function, polyrailDataType_t type);

}  // namespace polyrail::capi
