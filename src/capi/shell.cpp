#include "src/capi/shell.hpp"

namespace polyrail::capi {
namespace {

// The C API promises a last error per thread, as NCCL does.
thread_local std::string t_last_error;

}  // namespace

void Creation::run(const MakeCommunicator& make) {
  Status status = catch_all("make a communicator", [&]() -> Status {
    Result<std::unique_ptr<Communicator>> made = make();
    if (!made.is_ok()) return made.status();
    communicator_ = std::move(made).value();
    return ok();
  });
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
  is_over_.store(true, std::memory_order_release);
  if (is_unwanted_ && communicator_ != nullptr) communicator_->abort();
}

void Creation::abort() {
  const std::lock_guard lock(mutex_);
  is_unwanted_ = true;
  if (is_over_.load(std::memory_order_relaxed) && communicator_ != nullptr) communicator_->abort();
}

Status Creation::status() const {
  if (is_over_.load(std::memory_order_acquire)) return status_;
  return {StatusCode::kInProgress, "the communicator is being made"};
}

void Creation::leave_call() {
  if (call_count_.fetch_sub(1, std::memory_order_acq_rel) == 1) call_count_.notify_all();
}

void Creation::wait_for_calls() {
  for (int count = call_count_.load(); count != 0; count = call_count_.load()) {
    call_count_.wait(count);
  }
}

void Family::join() {
  const std::lock_guard lock(mutex_);
  ++count_;
}

void Family::leave(std::function<void()> end) {
  {
    const std::lock_guard lock(mutex_);
    if (--count_ > 0) {
      ending_.emplace_back(std::move(end));
      return;
    }
  }
  end();
  for (std::thread& thread : ending_) thread.join();
}

polyrailResult_t report(polyrailComm* comm, const Status& status) {
  if (!status.is_ok()) {
    t_last_error = status.message();
    if (comm != nullptr) {
      const std::lock_guard lock(comm->error_mutex);
      comm->last_error = status.message();
    }
  }
  return static_cast<polyrailResult_t>(status.code());
}

const char* last_error() {
  return t_last_error.c_str();
}

Status check_ready(const char* function, const polyrailComm& comm) {
  Status status = comm.creation->status();
  if (status.code() != StatusCode::kInProgress) return status;
  return {StatusCode::kInvalidUsage,
          std::string(function) +
              ": the communicator is not ready; polyrailCommGetAsyncError says when it is"};
}

Result<DataType> to_type(const char* function, polyrailDataType_t type) {
  const int number = static_cast<int>(type);
  if (number >= 0 && number <= 255 && is_valid(static_cast<DataType>(number))) {
    return static_cast<DataType>(number);
  }
  return invalid(function, "the data type " + std::to_string(number) + " is unknown");
}

}  // namespace polyrail::capi
