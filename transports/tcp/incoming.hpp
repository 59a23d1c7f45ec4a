// IncomingFrames: the receiving half of one socket. Heads and small payloads come through a small
// buffer, large payloads go from the socket to where they belong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <polyrail/status.hpp>

#include "transports/tcp/outgoing.hpp"
#include "transports/tcp/wire.hpp"
#include "transports/transport.hpp"

namespace polyrail::tcp {

// The order in which an endpoint's frames are offered to the sink, over all its sockets.
struct FrameOrder {
  std::size_t socket_count = 1;
  std::uint32_t next_sequence = 0;
  std::uint32_t landing_count = 0;  // slices offered and not yet completely received
  bool is_stalled = false;          // the next one has been answered kLater
};

class IncomingFrames {
 public:
  // `fd` is a non-blocking socket; `outgoing` the other half of it; all outlive this.
  IncomingFrames(int fd, Endpoint& endpoint, FrameOrder& order, OutgoingFrames& outgoing);

  // Takes in what is there, up to a bound. True if anything happened.
  bool read(Sink& sink);

  // An event says that the socket has bytes or has come to its end.
  void on_readable(bool has_ended);
  // There may be bytes in the socket that read() would take at once.
  bool is_readable() const { return is_readable_ && !is_waiting(); }
  // False once after bytes of a payload came that were all there were: more take a while.
  bool is_worth_asking() { return !std::exchange(was_just_emptied_, false); }
  // A frame has been taken from the socket that cannot be given to the sink yet: the sink has
  // answered kLater, or frames of the endpoint's other sockets come first.
  bool is_waiting() const { return state_ == State::kStalled || state_ == State::kAwaitsTurn; }
  // Nothing more can come of this socket: it was closed between two frames, or while a frame waits
  // whose acknowledgement nobody awaits any more.
  bool is_over() const { return is_at_end_ || (has_ended_ && is_waiting()); }
  bool is_stalled() const { return state_ == State::kStalled; }
  void discard(std::uint32_t operation);

  // What is wrong with the socket or what came through it; kOk while all is well.
  const Status& failure() const { return failure_; }

 private:
  enum class State : std::uint8_t { kHead, kAwaitsTurn, kStalled, kPayload };

  std::size_t staged_bytes() const { return staged_end_ - staged_begin_; }
  // Handles all that is staged; true if anything happened.
  bool parse(Sink& sink);
  bool parse_head(Sink& sink);
  bool is_sound() const;
  bool is_in_order() const;
  bool accept_acknowledgement(Sink& sink);
  bool offer(Sink& sink);
  bool offer_control(Sink& sink);
  bool offer_slice(Sink& sink);
  void take_staged_payload();
  void finish_slice(Sink& sink);
  // What has arrived behind the slice that is complete now, if that is large.
  std::uint32_t ahead_bytes() const;
  // One system call; false if there is nothing more for now.
  bool fetch();
  bool fetched(ssize_t got, std::size_t asked);
  void fail(Status status);

  int fd_;
  Endpoint& endpoint_;
  FrameOrder& order_;
  OutgoingFrames& outgoing_;

  State state_ = State::kHead;
  bool is_readable_ = true;
  bool has_ended_ = false;  // read until the end shows, whatever the counts say
  bool is_at_end_ = false;
  bool was_just_emptied_ = false;
  FramePrefix prefix_;
  SliceHeader header_;
  bool was_stalled_ = false;
  bool is_discarded_ = false;
  std::byte* target_ = nullptr;
  std::uint32_t left_bytes_ = 0;

  std::unique_ptr<std::byte[]> staging_;
  std::size_t staged_begin_ = 0;
  std::size_t staged_end_ = 0;
  Status failure_;
};

}  // namespace polyrail::tcp
