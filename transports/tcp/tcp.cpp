#include "transports/tcp/tcp.hpp"

#include <poll.h>
#include <sodium.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <linux/sockios.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "src/base/assert.hpp"
#include "transports/tcp/endpoint.hpp"
#include "transports/tcp/greeter.hpp"

namespace polyrail {
namespace tcp {
namespace {

// Events are looked at once in so many rounds: with expected endpoints, which are asked directly,
// and without, where nothing is urgent.
constexpr std::uint32_t kEventInterval = 16;
constexpr std::uint32_t kIdleEventInterval = 4;
constexpr std::size_t kEventsPerLook = 64;

constexpr std::uint32_t kReadEvents = EPOLLIN | EPOLLRDHUP | EPOLLET;
constexpr std::uint32_t kMutedEvents = EPOLLRDHUP | EPOLLET;

// What the destructor waits for peers to take in what they were sent: at most this long, and no
// longer than this without any of it moving.
constexpr std::chrono::milliseconds kLingerLongest{5000};
constexpr std::chrono::milliseconds kLingerIdle{1000};

class TcpTransport final : public Transport {
 public:
  TcpTransport(const Rail& rail, const TransportContext& context, std::uint16_t socket_count,
               SocketPlace place, Listener listener, Descriptor epoll, Descriptor write_epoll,
               Logger logger)
      : rail_(rail),
        context_(context),
        socket_count_(socket_count),
        host_(host_identity()),
        logger_(logger),
        epoll_(std::move(epoll)),
        write_epoll_(std::move(write_epoll)),
        greeter_(epoll_.get(), std::move(place), std::move(listener),
                 {.key = context.key,
                  .communicator_id = context.communicator_id,
                  .rank = static_cast<std::uint32_t>(context.rank),
                  .rank_count = static_cast<std::uint32_t>(context.rank_count)},
                 context.connect_timeout_ms, logger),
        endpoints_(static_cast<std::size_t>(context.rank_count)) {
    roster_.expected.reserve(endpoints_.size());
    roster_.attended.reserve(endpoints_.size());
  }
  ~TcpTransport() override { linger(); }

  Status start();

  const Rail& rail() const override { return rail_; }
  RailCaps caps() const override {
    return {.can_stream = false, .buffered_bytes = kBufferedBytes, .best_slice_bytes = 256 * 1024};
  }
  std::string address() const override { return own_address().to_bytes(); }
  Result<Endpoint*> connect(int peer, std::string_view address) override;
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> memory) override;
  bool progress(Sink& sink) override;
  int descriptor() const override { return epoll_.get(); }
  bool prepare_sleep() override;
  void end_sleep(bool was_woken) override {
    looks_at_events_ |= was_woken;
    knows_of_nothing_ = !was_woken;
  }

 private:
  RailAddress own_address() const { return {greeter_.address(), host_}; }
  bool visit(TcpEndpoint& endpoint, Sink& sink, bool looks);
  bool visit_attended(Sink& sink);
  bool handle_events(Sink& sink);
  void handle_write_events();
  bool handle_met(Sink& sink);
  Status watch(FramedSocket& socket);
  void set_muted(FramedSocket& socket, bool is_muted);
  void take_down(TcpEndpoint& endpoint, const Status& why, Sink& sink);
  // A socket that is to be closed as soon as the peer has all that it was sent.
  struct Leaving {
    FramedSocket* socket;
    bool is_shut = false;
  };
  void linger();
  // One look at it; true when it may be closed.
  bool leave(Leaving& leaving, bool& has_moved);

  const Rail rail_;
  const TransportContext context_;
  const std::uint16_t socket_count_;
  const HostIdentity host_;
  Logger logger_;
  Descriptor epoll_;
  // Sockets that can be written again; apart from epoll_, which it is part of, so that a socket
  // that may be written at any time does not count as news when bytes arrive.
  Descriptor write_epoll_;
  Watched writers_tag_{Watched::Kind::kWriters};
  Greeter greeter_;
  std::vector<std::unique_ptr<TcpEndpoint>> endpoints_;  // by peer
  Roster roster_;
  std::uint32_t round_ = 0;
  bool looks_at_events_ = true;
  bool knows_of_nothing_ = false;  // right after a sleep that something else ended
};

Status TcpTransport::start() {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &writers_tag_;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, write_epoll_.get(), &event) != 0) {
    return system_error("watch a descriptor", errno);
  }
  return greeter_.start();
}

Result<Endpoint*> TcpTransport::connect(int peer, std::string_view address) {
  const std::string whom = "rail " + rail_.name + ", rank " + std::to_string(peer) + ": ";
  if (peer < 0 || peer >= context_.rank_count || peer == context_.rank) {
    return Status(StatusCode::kInvalidArgument, whom + "there is no such peer");
  }
  auto& endpoint = endpoints_[static_cast<std::size_t>(peer)];
  if (endpoint != nullptr) {
    return Status(StatusCode::kInvalidUsage, whom + "connect was called before");
  }
  Result<RailAddress> remote = RailAddress::from_bytes(address);
  if (!remote.is_ok()) {
    return Status(remote.status().code(), whom + remote.status().message());
  }
  if (Status status = check_reachable(own_address(), remote.value()); !status.is_ok()) {
    return Status(status.code(), whom + status.message());
  }
  remote.value().socket.set_scope(greeter_.address().scope());
  endpoint = std::make_unique<TcpEndpoint>(peer, roster_);
  greeter_.meet(peer, remote.value().socket, socket_count_);
  looks_at_events_ = true;
  return endpoint.get();
}

Result<std::unique_ptr<MemoryRegion>> TcpTransport::register_memory(std::span<std::byte> memory) {
  // The kernel reads and writes any memory of the process.
  class PlainRegion final : public MemoryRegion {};
  (void)memory;
  return std::unique_ptr<MemoryRegion>(std::make_unique<PlainRegion>());
}

bool TcpTransport::progress(Sink& sink) {
  bool has_moved = false;
  const bool looks = !std::exchange(knows_of_nothing_, false);
  // By index: the sink may change what is expected.
  for (std::size_t i = 0; i < roster_.expected.size(); ++i) {
    has_moved |= visit(*roster_.expected[i], sink, looks);
  }
  has_moved |= visit_attended(sink);
  const std::uint32_t interval = roster_.expected.empty() ? kIdleEventInterval : kEventInterval;
  const bool is_due = ++round_ % interval == 0;
  if (is_due || (looks_at_events_ && !has_moved)) has_moved |= handle_events(sink);
  return has_moved;
}

bool TcpTransport::visit_attended(Sink& sink) {
  bool has_moved = false;
  for (std::size_t i = 0; i < roster_.attended.size();) {
    TcpEndpoint& endpoint = *roster_.attended[i];
    if (!endpoint.is_expected()) has_moved |= visit(endpoint, sink, false);
    if (endpoint.needs_attention() && !endpoint.is_expected()) {
      ++i;
    } else {
      endpoint.leave_attended();
      roster_.attended[i] = roster_.attended.back();
      roster_.attended.pop_back();
    }
  }
  return has_moved;
}

bool TcpTransport::visit(TcpEndpoint& endpoint, Sink& sink, bool looks) {
  if (endpoint.state() != EndpointState::kUp) return false;
  const bool has_moved = endpoint.progress(sink, looks);
  if (!endpoint.can_go_on()) [[unlikely]] {
    take_down(endpoint, endpoint.failure(), sink);
    return true;
  }
  for (auto& socket : endpoint.sockets()) {
    if (socket->is_muted && !socket->incoming.is_waiting()) set_muted(*socket, false);
  }
  return has_moved;
}

bool TcpTransport::handle_events(Sink& sink) {
  std::array<epoll_event, kEventsPerLook> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsPerLook, 0);
  looks_at_events_ = count == static_cast<int>(kEventsPerLook);
  bool has_moved = false;
  bool has_greeted = greeter_.has_met();
  for (int i = 0; i < count; ++i) {
    auto& watched = *static_cast<Watched*>(events[static_cast<std::size_t>(i)].data.ptr);
    switch (watched.kind) {
      case Watched::Kind::kSocket: {
        auto& socket = static_cast<FramedSocket&>(watched);
        const bool has_ended =
            (events[static_cast<std::size_t>(i)].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        socket.incoming.on_readable(has_ended);
        has_moved |= visit(socket.endpoint, sink, false);
        if (!socket.endpoint.is_expected()) socket.endpoint.ask_for_attention();
        break;
      }
      case Watched::Kind::kWriters:
        handle_write_events();
        has_moved = true;
        break;
      case Watched::Kind::kListener:
      case Watched::Kind::kTimer:
      case Watched::Kind::kGreeting:
        greeter_.on_event(watched);
        has_greeted = true;
        break;
    }
  }
  if (has_greeted) has_moved |= handle_met(sink);
  return has_moved;
}

void TcpTransport::handle_write_events() {
  std::array<epoll_event, kEventsPerLook> events;
  const int count = epoll_wait(write_epoll_.get(), events.data(), kEventsPerLook, 0);
  for (int i = 0; i < count; ++i) {
    auto& socket = *static_cast<FramedSocket*>(
        static_cast<Watched*>(events[static_cast<std::size_t>(i)].data.ptr));
    if (socket.endpoint.state() != EndpointState::kUp) continue;
    socket.outgoing.on_writable();
    socket.endpoint.ask_for_attention();
  }
}

bool TcpTransport::handle_met(Sink& sink) {
  std::vector<Met> all = greeter_.take_met();
  for (Met& met : all) {
    TcpEndpoint& endpoint = *endpoints_[static_cast<std::size_t>(met.peer)];
    Status failure = met.failure;
    if (failure.is_ok()) {
      std::string path =
          describe_path(local_address(met.sockets.front().get()), rail_.device, met.remote);
      endpoint.start(std::move(met.sockets), std::move(path));
      for (auto& socket : endpoint.sockets()) {
        if (failure.is_ok()) failure = watch(*socket);
      }
    }
    if (!failure.is_ok()) {
      take_down(endpoint, failure, sink);
      continue;
    }
    sink.on_up(endpoint);
    endpoint.ask_for_attention();
  }
  return !all.empty();
}

Status TcpTransport::watch(FramedSocket& socket) {
  epoll_event event{};
  event.data.ptr = static_cast<Watched*>(&socket);
  event.events = kReadEvents;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.fd.get(), &event) != 0) {
    return system_error("watch a socket", errno);
  }
  event.events = EPOLLOUT | EPOLLET;
  if (epoll_ctl(write_epoll_.get(), EPOLL_CTL_ADD, socket.fd.get(), &event) != 0) {
    return system_error("watch a socket", errno);
  }
  return ok();
}

void TcpTransport::set_muted(FramedSocket& socket, bool is_muted) {
  epoll_event event{};
  event.data.ptr = static_cast<Watched*>(&socket);
  event.events = is_muted ? kMutedEvents : kReadEvents;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket.fd.get(), &event) == 0) {
    socket.is_muted = is_muted;
  }
}

void TcpTransport::take_down(TcpEndpoint& endpoint, const Status& why, Sink& sink) {
  std::string text = "rail " + rail_.name + ", rank " + std::to_string(endpoint.peer()) + ": ";
  if (!endpoint.path().empty()) text += endpoint.path() + ": ";
  const Status full(why.code(), text + why.message());
  endpoint.end();
  logger_->info("{}", full.message());
  sink.on_down(endpoint, full);
}

bool TcpTransport::prepare_sleep() {
  if (looks_at_events_) return false;
  for (const auto* endpoints : {&roster_.expected, &roster_.attended}) {
    for (TcpEndpoint* endpoint : *endpoints) {
      for (auto& socket : endpoint->sockets()) {
        // A peer that is to send something is not waiting for the acknowledgement of what was
        // copied.
        if (endpoints == &roster_.expected) {
          socket->outgoing.settle_acknowledgements();
        } else {
          socket->outgoing.flush_acknowledgements();
        }
      }
      if (!endpoint->is_settled() || !endpoint->can_go_on()) return false;
      for (auto& socket : endpoint->sockets()) {
        if (socket->incoming.is_readable()) return false;
        if (socket->incoming.is_waiting() && !socket->is_muted) set_muted(*socket, true);
      }
    }
  }
  return true;
}

void TcpTransport::linger() {
  std::vector<Leaving> open;
  for (auto& endpoint : endpoints_) {
    if (endpoint == nullptr || endpoint->state() != EndpointState::kUp) continue;
    for (auto& socket : endpoint->sockets()) open.push_back({socket.get()});
  }
  const auto start = Clock::now();
  auto last_move = start;
  while (true) {
    bool has_moved = false;
    std::erase_if(open, [&](Leaving& leaving) { return leave(leaving, has_moved); });
    if (open.empty()) return;
    const auto now = Clock::now();
    if (has_moved) last_move = now;
    if (now - start > kLingerLongest || now - last_move > kLingerIdle) {
      logger_->warn("rail {}: closed {} sockets before the peers had all that they were sent",
                    rail_.name, open.size());
      // A peer that does not read would not find the end of the stream behind what it does not
      // want.
      for (const Leaving& leaving : open) reset_on_close(leaving.socket->fd.get());
      return;
    }
    poll(nullptr, 0, 1);
  }
}

bool TcpTransport::leave(Leaving& leaving, bool& has_moved) {
  OutgoingFrames& outgoing = leaving.socket->outgoing;
  const int fd = leaving.socket->fd.get();
  const std::uint64_t unwritten = outgoing.unwritten_bytes();
  outgoing.on_writable();
  outgoing.flush_acknowledgements();
  has_moved |= outgoing.unwritten_bytes() != unwritten;
  // Bytes that nobody reads would make the system reset the socket, and keep the peer from reading.
  std::array<std::byte, 16 * 1024> unread;
  ssize_t got;
  while ((got = recv(fd, unread.data(), unread.size(), 0)) > 0) has_moved = true;
  const bool is_over = got == 0 || (errno != EAGAIN && errno != EINTR);
  if (is_over || outgoing.error_number() != 0) return true;
  if (outgoing.has_unwritten()) return false;
  // The end of the stream makes the peer answer soon. Only behind it may the socket be closed:
  // should an acknowledgement still come in, the system answers with a reset, and a peer that finds
  // one socket reset does not wait for what is under way on the others.
  if (!std::exchange(leaving.is_shut, true)) shutdown(fd, SHUT_WR);
  int in_flight_bytes = 0;  // including the end
  return ioctl(fd, SIOCOUTQ, &in_flight_bytes) != 0 || in_flight_bytes == 0;
}

}  // namespace
}  // namespace tcp

Result<std::unique_ptr<Transport>> open_tcp(const Rail& rail, const TransportContext& context,
                                            const Options& options, Logger logger) {
  PR_ASSERT(context.rank >= 0 && context.rank < context.rank_count);
  const auto with_rail = [&rail](const Status& status) {
    return Status(status.code(), "rail " + rail.name + ": " + status.message());
  };
  if (sodium_init() < 0) return Status(StatusCode::kSystemError, "libsodium cannot be used");
  if (context.key.size() != crypto_generichash_KEYBYTES) {
    return Status(StatusCode::kInvalidArgument,
                  "the key has " + std::to_string(context.key.size()) + " bytes instead of 32");
  }
  Result<tcp::SocketAddress> address = tcp::SocketAddress::parse(rail.address, rail.device);
  if (!address.is_ok()) return with_rail(address.status());
  tcp::SocketPlace place{rail.device, address.value()};
  Result<tcp::Listener> listener = tcp::listen_at(place);
  if (!listener.is_ok()) return with_rail(listener.status());
  tcp::Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  tcp::Descriptor write_epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_open() || !write_epoll.is_open()) {
    return with_rail(tcp::system_error("make an epoll descriptor", errno));
  }
  const auto socket_count = static_cast<std::uint16_t>(
      std::clamp<std::int64_t>(options.tcp_sockets, 1, tcp::Handshake::kMaxSockets));
  auto transport = std::make_unique<tcp::TcpTransport>(
      rail, context, socket_count, std::move(place), std::move(listener.value()), std::move(epoll),
      std::move(write_epoll), std::move(logger));
  if (Status status = transport->start(); !status.is_ok()) return with_rail(status);
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace polyrail
