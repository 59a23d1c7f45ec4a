// Status and Result: how a failure that is expected in the field is reported, with its cause.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace polyrail {

// Values equal the C API's polyrailResult_t.
enum class StatusCode : std::uint8_t {
  kOk = 0,
  kSystemError = 2,      // a call into the operating system failed
  kInternalError = 3,    // a promise between Polyrail's own parts was broken
  kInvalidArgument = 4,  // one argument cannot be right
  kInvalidUsage = 5,     // ranks do not agree, or a call at the wrong time
  kRemoteError = 6,      // another rank failed or went away
  kInProgress = 7,       // not finished
  kTimeout = 8,          // a deadline passed; the text lists what was missing
  kAborted = 9,          // the communicator was aborted by its user
};

const char* name(StatusCode code);

// A code and, unless it is kOk, one sentence: what was attempted, on which rail and peer, and the
// cause seen.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool is_ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  friend bool operator==(const Status&, const Status&) = default;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status ok() {
  return {};
}

// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT: conversion is the purpose
  Result(Status status) : state_(std::move(status)) {}  // NOLINT

  bool is_ok() const { return std::holds_alternative<T>(state_); }
  // Precondition: is_ok().
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  // The failure; kOk if there is a value.
  Status status() const { return is_ok() ? Status() : std::get<Status>(state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace polyrail
