#include "src/comm/fused.hpp"

#include <cstring>
#include <string>

#include <polyrail/fuse.hpp>

namespace polyrail {
namespace {

std::size_t bytes_of(const Call& call) {
  return static_cast<std::size_t>(call.count) * size_bytes(call.type);
}

}  // namespace

Status FusedCalls::check(std::span<const Call> calls) {
  std::uint64_t bytes = 0;
  for (const Call& call : calls) {
    if (!fits_together(calls.front(), call)) {
      return {StatusCode::kInvalidArgument, "start_fused: the calls do not fit together"};
    }
    bytes += bytes_of(call);
  }
  if (calls.empty() || bytes > kMostFusedBytes) {
    return {StatusCode::kInvalidArgument, "start_fused: " + std::to_string(calls.size()) +
                                              " calls of " + std::to_string(bytes) +
                                              " bytes together"};
  }
  return ok();
}

FusedCalls::FusedCalls(std::span<const Call> calls) : calls_(calls.begin(), calls.end()) {
  std::size_t bytes = 0;
  for (const Call& call : calls_) bytes += bytes_of(call);
  buffer_.resize(bytes);
}

Call FusedCalls::call() {
  const Call& first = calls_.front();
  return Call::all_reduce(buffer_.data(), buffer_.data(), buffer_.size() / size_bytes(first.type),
                          first.type, first.reduction);
}

void FusedCalls::copy_in() {
  std::byte* position = buffer_.data();
  for (const Call& call : calls_) {
    if (call.count == 0) continue;
    std::memcpy(position, call.input, bytes_of(call));
    position += bytes_of(call);
  }
}

void FusedCalls::copy_out() const {
  const std::byte* position = buffer_.data();
  for (const Call& call : calls_) {
    if (call.count == 0) continue;
    std::memcpy(call.output, position, bytes_of(call));
    position += bytes_of(call);
  }
}

}  // namespace polyrail
