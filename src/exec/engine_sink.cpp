// What the engine does when a transport tells it something.
#include <cstring>

#include "src/base/assert.hpp"
#include "src/exec/engine.hpp"

namespace polyrail {

void Engine::on_up(Endpoint&) {}

void Engine::on_down(Endpoint& endpoint, const Status& why) {
  const int peer = endpoint.peer();
  const Status lost = links_[peer]->on_down(endpoint, why);
  if (has_left_[peer]) fail_if_waiting_for(peer, why);
  if (has_left_[peer] || is_closing_ || has_failed_.load(std::memory_order_relaxed)) return;
  if (!lost.is_ok() || links_[peer]->best_endpoint() == nullptr) {
    fail(Status(StatusCode::kRemoteError, "rank " + std::to_string(rank_) +
                                              " lost its last rail to rank " +
                                              std::to_string(peer) + ": " + why.message()));
    return;
  }
  logger_->warn("rank {}: a rail to rank {} is down: {}", rank_, peer, why.message());
}

Landing Engine::on_slice(Endpoint& from, const SliceHeader& header) {
  constexpr Landing kDiscard{Landing::How::kDiscard, nullptr};
  if (has_failed_.load(std::memory_order_relaxed)) return kDiscard;
  if ((header.operation & Messages::kFlag) != 0) return messages_.on_slice(from, header);
  const std::int32_t ahead = ahead_of(header.operation);
  if (ahead > 0) {
    if (messages_.is_active()) return early_.accept(from, header);
    return {Landing::How::kLater, nullptr};
  }
  if (ahead <= -static_cast<std::int32_t>(kRemembered)) return kDiscard;
  const Begun& own = begun_[header.operation % kRemembered];
  // Of an uneven exchange the executor checks the counts, pair by pair.
  const bool is_same_call =
      header.call_kind == own.call_kind &&
      (header.call_count == own.call_count ||
       (own.call_count == kUnevenCount && (header.call_count & kUnevenCount) != 0));
  if (is_same_call && (ahead < 0 || !executor_.is_running())) return kDiscard;
  if (is_same_call && executor_.is_expected(from.peer(), header)) [[likely]] {
    return executor_.landing(header, links_[from.peer()]->can_stream(from));
  }
  if (!is_same_call) {
    fail_for(from.peer(), header.operation, header.call_kind, header.call_count);
  } else if (current_ != nullptr && current_->plan->is_uneven_exchange) {
    fail(Status(StatusCode::kInvalidUsage,
                describe_current() + ": rank " + std::to_string(from.peer()) + " sends " +
                    std::to_string(header.call_count & ~kUnevenCount) +
                    " bytes in one piece, this rank expects " +
                    std::to_string(executor_.expected_bytes(header.signal))));
  } else {
    fail(Status(StatusCode::kInternalError,
                describe_current() + ": rank " + std::to_string(from.peer()) + " sent " +
                    std::to_string(header.bytes) + " bytes at " +
                    std::to_string(header.offset_bytes) + " of signal " +
                    std::to_string(header.signal) + ", which the plan does not know"));
  }
  return kDiscard;
}

void Engine::fail_for(int peer, std::uint32_t number, std::uint32_t kind, std::uint64_t count) {
  const Begun& own = begun_[number % kRemembered];
  fail(Status(StatusCode::kInvalidUsage,
              "the ranks do not agree on operation " + std::to_string(number) + ": rank " +
                  std::to_string(rank_) + " called " + call_text(own.call_kind, own.call_count) +
                  ", rank " + std::to_string(peer) + " called " + call_text(kind, count)));
}

void Engine::on_landed(Endpoint& from, const SliceHeader& header) {
  if ((header.operation & Messages::kFlag) != 0) {
    messages_.on_landed(from, header);
    return;
  }
  if (!early_.is_empty() && early_.on_landed(from, header)) {
    // Its operation may have begun, or be over, by now.
    if (ahead_of(header.operation) <= 0) deliver_early(header.operation);
    return;
  }
  if (executor_.is_running() && header.operation == last_number_) executor_.on_landed(header);
}

void Engine::on_bytes(Endpoint&, const SliceHeader& header, std::uint32_t offset_bytes,
                      std::span<const std::byte> bytes) {
  if (executor_.is_running() && header.operation == last_number_) {
    executor_.on_bytes(header, offset_bytes, bytes);
  }
}

void Engine::on_acknowledged(Endpoint& to, const Acknowledgement& done) {
  links_[to.peer()]->on_acknowledged(to, done);
}

void Engine::on_control(Endpoint& from, std::span<const std::byte> message) {
  if (message.empty()) return;
  const std::string text(reinterpret_cast<const char*>(message.data()) + 1, message.size() - 1);
  switch (static_cast<Control>(message[0])) {
    case Control::kFailed:
      fail(Status(StatusCode::kRemoteError,
                  "rank " + std::to_string(from.peer()) + " reports: " + text));
      has_left_[from.peer()] = true;  // wants nothing from this rank any more
      return;
    case Control::kGoodbye:
      has_left_[from.peer()] = true;
      return;
  }
}

void Engine::on_put_progress(std::uint32_t put, std::uint64_t offset, std::uint64_t bytes) {
  if ((put & Messages::kPutFlag) != 0) {
    messages_.on_put_progress(put, bytes);
    return;
  }
  executor_.on_put_progress(put, offset, bytes);
}

}  // namespace polyrail
