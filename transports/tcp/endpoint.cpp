#include "transports/tcp/endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/assert.hpp"

namespace polyrail::tcp {
namespace {

// An acknowledgement that waits for a frame to carry it waits for so many visits at most.
constexpr int kAckPatience = 256;
// Rounds over the sockets of one endpoint in which frames may wait for each other's turn.
constexpr int kTurnsPerVisit = 4;

}  // namespace

FramedSocket::FramedSocket(Descriptor fd_, TcpEndpoint& endpoint_, FrameOrder& order)
    : Watched(Kind::kSocket),
      endpoint(endpoint_),
      fd(std::move(fd_)),
      outgoing(fd.get()),
      incoming(fd.get(), endpoint_, order, outgoing) {}

void TcpEndpoint::start(std::vector<Descriptor> descriptors, std::string path) {
  PR_ASSERT(state_ == EndpointState::kConnecting);
  path_ = std::move(path);
  order_.socket_count = descriptors.size();
  for (Descriptor& fd : descriptors) {
    sockets_.push_back(std::make_unique<FramedSocket>(std::move(fd), *this, order_));
  }
  state_ = EndpointState::kUp;
}

Posted TcpEndpoint::put(const SliceHeader& header, const std::byte* source, std::uint64_t cookie) {
  if (state_ != EndpointState::kUp) return Posted::kBusy;
  FramedSocket& socket = pick_socket();
  const Posted posted = socket.outgoing.put(header, source, cookie, next_sequence_);
  if (posted != Posted::kBusy) ++next_sequence_;
  if (socket.outgoing.error_number() != 0) ask_for_attention();
  return posted;
}

Posted TcpEndpoint::send_control(std::span<const std::byte> message) {
  if (state_ != EndpointState::kUp) return Posted::kBusy;
  FramedSocket& socket = pick_socket();
  const Posted posted = socket.outgoing.send_control(message, next_sequence_);
  if (posted != Posted::kBusy) ++next_sequence_;
  if (socket.outgoing.error_number() != 0) ask_for_attention();
  return posted;
}

FramedSocket& TcpEndpoint::pick_socket() {
  if (sockets_.size() == 1) return *sockets_.front();
  return **std::min_element(sockets_.begin(), sockets_.end(), [](const auto& a, const auto& b) {
    return a->outgoing.load_bytes() < b->outgoing.load_bytes();
  });
}

void TcpEndpoint::expect(bool is_expected) {
  if (is_expected == is_expected_ || (is_expected && state_ == EndpointState::kDown)) return;
  is_expected_ = is_expected;
  if (is_expected) {
    roster_.expected.push_back(this);
  } else {
    std::erase(roster_.expected, this);
    ask_for_attention();
  }
}

void TcpEndpoint::discard_incoming(std::uint32_t operation) {
  for (auto& socket : sockets_) socket->incoming.discard(operation);
}

bool TcpEndpoint::progress(Sink& sink, bool looks) {
  bool has_moved = false;
  is_settled_ = true;
  for (int turn = 0; turn < kTurnsPerVisit; ++turn) {
    bool has_turned = false;
    for (auto& socket : sockets_) {
      IncomingFrames& incoming = socket->incoming;
      if (!incoming.failure().is_ok()) continue;
      // What has arrived before the loss is still taken.
      if (socket->outgoing.error_number() != 0) incoming.on_readable(true);
      const bool asks = looks && incoming.is_worth_asking();
      if (asks || incoming.is_readable() || incoming.is_waiting()) {
        has_turned |= incoming.read(sink);
      }
    }
    has_moved |= has_turned;
    // With several sockets, what one has taken may be what another has waited for.
    is_settled_ = !has_turned || sockets_.size() == 1;
    if (is_settled_) break;
    // One socket is lost: what came through the others before is still taken.
    looks = has_lost_socket();
  }
  settle_acknowledgements();
  return has_moved;
}

void TcpEndpoint::settle_acknowledgements() {
  bool is_owed = false;
  for (auto& socket : sockets_) {
    socket->outgoing.settle_acknowledgements();
    is_owed |= socket->outgoing.owes_acknowledgement();
  }
  if (!is_owed) {
    unanswered_visits_ = 0;
  } else if (++unanswered_visits_ > kAckPatience) {
    unanswered_visits_ = 0;
    for (auto& socket : sockets_) socket->outgoing.flush_acknowledgements();
  }
}

bool TcpEndpoint::needs_attention() const {
  if (state_ != EndpointState::kUp) return false;
  if (!is_settled_) return true;
  return std::any_of(sockets_.begin(), sockets_.end(), [](const auto& socket) {
    return socket->incoming.is_readable() || socket->incoming.is_waiting() ||
           socket->outgoing.owes_acknowledgement() || socket->outgoing.error_number() != 0 ||
           !socket->incoming.failure().is_ok();
  });
}

void TcpEndpoint::ask_for_attention() {
  if (is_attended_ || !needs_attention()) return;
  is_attended_ = true;
  roster_.attended.push_back(this);
}

bool TcpEndpoint::has_lost_socket() const {
  return std::any_of(sockets_.begin(), sockets_.end(), [](const auto& socket) {
    return socket->outgoing.error_number() != 0 || !socket->incoming.failure().is_ok();
  });
}

bool TcpEndpoint::can_go_on() const {
  // What one socket has just taken may be what another, already at its end, has waited for.
  if (!is_settled_) return true;
  bool is_over = !sockets_.empty();
  for (const auto& socket : sockets_) {
    const IncomingFrames& incoming = socket->incoming;
    // A socket that the peer has ended takes no more acknowledgements; the others may still bring
    // what it was sent.
    const bool is_broken = socket->outgoing.error_number() != 0 && !incoming.is_over();
    if (is_broken && !incoming.is_readable()) return false;
    if (!incoming.failure().is_ok()) return false;
    // A peer that leaves closes its sockets one after the other.
    is_over &= incoming.is_over();
    if (incoming.is_stalled() && incoming.is_over()) return false;
  }
  return !is_over;
}

Status TcpEndpoint::failure() const {
  for (const auto& socket : sockets_) {
    if (const int number = socket->outgoing.error_number(); number != 0) {
      return system_error("send", number);
    }
    if (!socket->incoming.failure().is_ok()) return socket->incoming.failure();
  }
  return {StatusCode::kRemoteError, "the peer closed the socket"};
}

void TcpEndpoint::end() {
  if (is_expected_) std::erase(roster_.expected, this);
  is_expected_ = false;
  state_ = EndpointState::kDown;
  for (auto& socket : sockets_) socket->fd.close();
}

}  // namespace polyrail::tcp
