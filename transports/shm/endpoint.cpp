#include "transports/shm/endpoint.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/assert.hpp"

namespace polyrail::shm {
namespace {

Result<Mapping> reserve_and_map(const FileDescriptor& file, Outbox::Range range) {
  const Status reserved = reserve_pages(file, range.offset_bytes, range.bytes);
  if (!reserved.is_ok()) return reserved;
  return map_file(file, range.offset_bytes, range.bytes);
}

Direction* direction_in(const Mapping& mapping) {
  return reinterpret_cast<Direction*>(mapping.base());
}

}  // namespace

ShmEndpoint::ShmEndpoint(Home& home, int peer, const Address& address, Clock::time_point deadline)
    : Endpoint(peer), home_(home), address_(address), deadline_(deadline) {
  failure_ = is_reachable(home.address, address);
  if (failure_.is_ok()) failure_ = make_own();  // first: so the peer can be told of a failure
  if (failure_.is_ok()) failure_ = open_peer();
  if (!failure_.is_ok()) return;
  sender_.emplace(*own_, home_.address.staging_bytes, crossing_);
  receiver_.emplace(*theirs_, address_.staging_bytes, crossing_, PeerBlocks(address_.pid));
  own_->proof = proof_of(home_.rank, peer, home_.address, address_);
  own_->is_ready.store(1);
}

ShmEndpoint::~ShmEndpoint() {
  if (own_ != nullptr) publish(own_->is_closed);
  home_.exchange->leave(peer());
}

Status ShmEndpoint::make_own() {
  auto memory = reserve_and_map(home_.outbox, home_.layout().direction(peer()));
  if (!memory.is_ok()) return memory.status();
  own_memory_ = std::move(memory).value();
  own_ = direction_in(own_memory_);
  return ok();
}

// Opens what the peer offers. Nothing in it is believed yet.
Status ShmEndpoint::open_peer() {
  process_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, address_.pid, 0)));
  if (!process_.is_open() && errno == ESRCH) {
    return {StatusCode::kRemoteError,
            "its process " + std::to_string(address_.pid) + " does not exist"};
  }
  const auto file = open_descriptor_of(address_.pid, address_.outbox, O_RDWR);
  if (!file.is_ok()) return file.status();
  const auto size = sealed_size_bytes(file.value());
  if (!size.is_ok()) return size.status();
  const Outbox layout{home_.layout().rank_count, address_.staging_bytes};
  if (size.value() != layout.bytes()) {
    return {StatusCode::kRemoteError, "its memory has " + std::to_string(size.value()) +
                                          " bytes where " + std::to_string(layout.bytes()) +
                                          " were expected: another number of ranks?"};
  }
  auto memory = reserve_and_map(file.value(), layout.direction(home_.rank));
  if (!memory.is_ok()) return memory.status();
  auto boards = reserve_and_map(file.value(), layout.boards());
  if (!boards.is_ok()) return boards.status();
  peer_memory_ = std::move(memory).value();
  peer_boards_ = std::move(boards).value();
  theirs_ = direction_in(peer_memory_);
  return ok();
}

// The addresses hold the nonces: each end has challenged the other by its own.
Proof ShmEndpoint::proof_of(int from, int to, const Address& from_address,
                            const Address& to_address) const {
  return prove(home_.key,
               {"polyrail shm", bytes_of(home_.communicator_id), bytes_of(home_.rank_count),
                bytes_of(from), bytes_of(to), bytes_of(from_address), bytes_of(to_address)});
}

bool ShmEndpoint::connect(Sink& sink) {
  if (!failure_.is_ok()) {
    go_down(sink, failure_);
    return true;
  }
  if (own_->verdict.load() == Verdict::kNone && theirs_->is_ready.load() != 0) {
    if (const Status judged = judge_peer(); !judged.is_ok()) {
      own_->verdict.store(Verdict::kRefused);
      go_down(sink, judged);
      return true;
    }
  }
  const Verdict verdict = theirs_->verdict.load();
  if (verdict == Verdict::kRefused) {
    go_down(sink, {StatusCode::kRemoteError, "it refused the proof of this rank"});
  } else if (own_->verdict.load() != Verdict::kNone && verdict != Verdict::kNone) {
    sender_->start(ringer_, home_.blocks);
    receiver_->start(ringer_);
    home_.exchange->join(peer(), *reinterpret_cast<const BoardPair*>(peer_boards_.base()), ringer_);
    state_ = EndpointState::kUp;
    sink.on_up(*this);
  } else if (is_peer_dead_) {
    go_down(sink, {StatusCode::kRemoteError, "its process ended"});
  } else if (theirs_->is_closed.load() != 0) {
    go_down(sink, {StatusCode::kRemoteError, "it closed the rail"});
  } else if (Clock::now() >= deadline_) {
    go_down(sink, {StatusCode::kTimeout, own_->verdict.load() == Verdict::kNone
                                             ? "it did not connect in time"
                                             : "it did not answer in time"});
  } else {
    return false;
  }
  return true;
}

// The peer is ready: is it who it should be?
Status ShmEndpoint::judge_peer() {
  const Proof proof = theirs_->proof;  // a copy, which cannot change any more
  if (!is_same(proof, proof_of(peer(), home_.rank, address_, home_.address))) {
    return {StatusCode::kRemoteError, "its proof is wrong: another key, communicator or rank"};
  }
  auto ringer = Ringer::open(address_.pid, address_.bell, theirs_->asleep);
  if (!ringer.is_ok()) return ringer.status();
  ringer_ = std::move(ringer).value();
  own_->verdict.store(Verdict::kAccepted);
  return ok();
}

Posted ShmEndpoint::put(const SliceHeader& header, const std::byte* source, std::uint64_t cookie) {
  if (state_ != EndpointState::kUp) return Posted::kBusy;
  return sender_->put(header, source, cookie);
}

Posted ShmEndpoint::send_control(std::span<const std::byte> message) {
  if (state_ != EndpointState::kUp) return Posted::kBusy;
  return sender_->send_control(message);
}

bool ShmEndpoint::progress(Sink& sink, bool is_thorough) {
  if (state_ == EndpointState::kDown) return false;
  if (state_ == EndpointState::kConnecting) return connect(sink);
  // Looked at first: what the peer sent before it ended is still delivered.
  const bool is_over = is_peer_dead_ || theirs_->is_closed.load() != 0;
  const Receiver::Outcome received = receiver_->progress(*this, sink);
  const auto look = is_thorough || !is_expecting_ ? Sender::Look::kFar
                    : received.has_moved          ? Sender::Look::kNot
                                                  : Sender::Look::kNear;
  const bool has_sent = sender_->progress(*this, sink, look);
  if (!received.failure.is_ok()) {
    go_down(sink, received.failure);
  } else if (is_over && !received.has_moved) {
    go_down(sink,
            {StatusCode::kRemoteError, is_peer_dead_ ? "its process ended" : "it closed the rail"});
  } else {
    return received.has_moved || has_sent;
  }
  return true;
}

void ShmEndpoint::publish(std::atomic<std::uint32_t>& flag) {
  flag.store(1);
  if (state_ == EndpointState::kUp) ringer_.wake_for(~0U);
}

void ShmEndpoint::close() {
  if (own_ != nullptr) publish(own_->is_closed);
  if (state_ == EndpointState::kUp) sender_->stop();
  home_.exchange->leave(peer());
  state_ = EndpointState::kDown;
}

void ShmEndpoint::go_down(Sink& sink, const Status& why) {
  close();
  sink.on_down(*this, Status(why.code(), "rank " + std::to_string(peer()) + " over rail '" +
                                             home_.rail_name + "': " + why.message()));
}

bool ShmEndpoint::prepare_sleep() {
  if (state_ == EndpointState::kDown) return true;
  if (is_peer_dead_ || !failure_.is_ok()) return false;
  if (state_ == EndpointState::kConnecting) return true;
  own_->asleep.store(kArrivals | sender_->sleeps_for(is_expecting_));
  return theirs_->is_closed.load() == 0 && !receiver_->has_news() && !sender_->has_news();
}

void ShmEndpoint::end_sleep() {
  if (state_ == EndpointState::kUp) own_->asleep.store(0);
}

}  // namespace polyrail::shm
