#include "transports/shm/shm.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/assert.hpp"
#include "transports/shm/address.hpp"
#include "transports/shm/endpoint.hpp"
#include "transports/shm/layout.hpp"
#include "transports/shm/sender.hpp"
#include "transports/shm/tuning.hpp"

namespace polyrail {
namespace shm {
namespace {

// Nothing to announce: ordinary memory is copied, and that of mem_alloc is mapped by a peer when it
// first hears of it.
class PlainMemory final : public MemoryRegion {};

// What wakes a sleeping transport; `data` of the epoll entry says what it was.
constexpr std::uint64_t kBellEvent = ~std::uint64_t{0};
constexpr std::uint64_t kTimerEvent = kBellEvent - 1;  // any other: the peer of that rank ended

class ShmTransport final : public Transport {
 public:
  static Result<std::unique_ptr<Transport>> open(const Rail& rail, const TransportContext& context,
                                                 Logger logger);
  ShmTransport(const Rail& rail, int connect_timeout_ms, Home home, FileDescriptor timer,
               FileDescriptor epoll, Logger logger)
      : rail_(rail),
        connect_timeout_(connect_timeout_ms),
        logger_(std::move(logger)),
        home_(std::move(home)),
        timer_(std::move(timer)),
        epoll_(std::move(epoll)) {}

  const Rail& rail() const override { return rail_; }
  RailCaps caps() const override { return {.can_stream = true, .buffered_bytes = kBufferedBytes}; }
  std::string address() const override { return home_.address.to_bytes(); }
  Result<Endpoint*> connect(int peer, std::string_view address) override;
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte>) override {
    return std::unique_ptr<MemoryRegion>(std::make_unique<PlainMemory>());
  }
  SmallExchange* small_exchange() override { return home_.exchange.get(); }
  bool progress(Sink& sink) override;

  int descriptor() const override { return epoll_.get(); }
  bool prepare_sleep() override;
  void end_sleep(bool was_woken) override;

 private:
  // Every so many calls of progress(), acknowledgements are looked for that nobody waits for; and
  // after so many without any news, whether all peers are alive.
  static constexpr std::uint32_t kThoroughEvery = 256;
  static constexpr std::uint32_t kLookForDeathEvery = 16384;

  void look_at_descriptors();
  ShmEndpoint* find(int peer) const;

  const Rail rail_;
  const std::chrono::milliseconds connect_timeout_;
  const Logger logger_;
  Home home_;
  const FileDescriptor timer_;  // set while asleep with a peer that is not connected yet
  const FileDescriptor epoll_;
  std::vector<std::unique_ptr<ShmEndpoint>> endpoints_;
  std::uint32_t progress_count_ = 0;
  std::uint32_t idle_count_ = 0;
};

// The staging areas of all pairs of a host are reserved, so with many ranks each gets less.
std::uint32_t staging_bytes_for(int rank_count) {
  if (rank_count <= 8) return kStagingBytes;
  return rank_count <= 32 ? kStagingBytes / 2 : kStagingBytes / 4;
}

Result<std::unique_ptr<Transport>> ShmTransport::open(const Rail& rail,
                                                      const TransportContext& context,
                                                      Logger logger) {
  const auto failed = [&](const std::string& why) {
    return Status(StatusCode::kSystemError, "open rail '" + rail.name + "': " + why);
  };
  auto address = own_address();
  if (!address.is_ok()) return failed(address.status().message());
  auto nonce = random_nonce();
  if (!nonce.is_ok()) return failed(nonce.status().message());
  address.value().nonce = nonce.value();
  address.value().staging_bytes = staging_bytes_for(context.rank_count);
  const Outbox layout{static_cast<std::size_t>(context.rank_count), address.value().staging_bytes};
  // Only the parts that belong to peers of this host will ever have pages.
  auto outbox = make_memory_file("polyrail-" + rail.name, layout.bytes());
  if (!outbox.is_ok()) return failed(outbox.status().message());
  address.value().outbox = outbox.value().get();
  const Outbox::Range range = layout.boards();
  const Status reserved = reserve_pages(outbox.value(), range.offset_bytes, range.bytes);
  if (!reserved.is_ok()) return failed(reserved.message());
  auto boards = map_file(outbox.value(), range.offset_bytes, range.bytes);
  if (!boards.is_ok()) return failed(boards.status().message());
  auto bell = Doorbell::make();
  if (!bell.is_ok()) return failed(bell.status().message());
  address.value().bell = bell.value().descriptor();
  FileDescriptor timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  FileDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event bell_event{.events = EPOLLIN, .data = {.u64 = kBellEvent}};
  epoll_event timer_event{.events = EPOLLIN, .data = {.u64 = kTimerEvent}};
  if (!timer.is_open() || !epoll.is_open() ||
      ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, bell.value().descriptor(), &bell_event) != 0 ||
      ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, timer.get(), &timer_event) != 0) {
    return failed(std::string("make descriptors to sleep on: ") + std::strerror(errno));
  }

  Home home{.rail_name = rail.name,
            .rank = context.rank,
            .rank_count = context.rank_count,
            .communicator_id = context.communicator_id,
            .address = address.value(),
            .outbox = std::move(outbox).value(),
            .boards = std::move(boards).value(),
            .bell = std::move(bell).value()};
  home.exchange = std::make_unique<ShmSmallExchange>(
      *reinterpret_cast<BoardPair*>(home.boards.base()), context.rank_count);
  PR_ASSERT(context.key.size() == home.key.size());
  std::copy(context.key.begin(), context.key.end(), home.key.begin());
  return std::unique_ptr<Transport>(
      std::make_unique<ShmTransport>(rail, context.connect_timeout_ms, std::move(home),
                                     std::move(timer), std::move(epoll), std::move(logger)));
}

Result<Endpoint*> ShmTransport::connect(int peer, std::string_view address) {
  if (peer < 0 || peer >= home_.rank_count || peer == home_.rank) {
    return Status(StatusCode::kInvalidArgument,
                  "connect over rail '" + rail_.name + "': no peer " + std::to_string(peer));
  }
  PR_ASSERT(find(peer) == nullptr);
  const auto parsed = Address::from_bytes(address);
  if (!parsed.is_ok()) {
    return Status(parsed.status().code(), "connect to rank " + std::to_string(peer) +
                                              " over rail '" + rail_.name +
                                              "': " + parsed.status().message());
  }
  endpoints_.push_back(
      std::make_unique<ShmEndpoint>(home_, peer, parsed.value(), Clock::now() + connect_timeout_));
  ShmEndpoint& endpoint = *endpoints_.back();
  if (endpoint.process_descriptor() >= 0) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<std::uint64_t>(peer)}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, endpoint.process_descriptor(), &event) != 0) {
      logger_->warn("rail '{}': the end of rank {} will go unnoticed: {}", rail_.name, peer,
                    std::strerror(errno));
    }
  }
  logger_->debug("rail '{}': connecting to rank {}, process {}", rail_.name, peer,
                 parsed.value().pid);
  return static_cast<Endpoint*>(&endpoint);
}

ShmEndpoint* ShmTransport::find(int peer) const {
  for (const auto& endpoint : endpoints_) {
    if (endpoint->peer() == peer) return endpoint.get();
  }
  return nullptr;
}

bool ShmTransport::progress(Sink& sink) {
  if (idle_count_ >= kLookForDeathEvery) look_at_descriptors();
  const bool is_thorough = ++progress_count_ % kThoroughEvery == 0;
  bool has_moved = false;
  // By index: a callback may connect another peer.
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    has_moved |= endpoints_[i]->progress(sink, is_thorough);
  }
  idle_count_ = has_moved ? 0 : idle_count_ + 1;
  return has_moved;
}

bool ShmTransport::prepare_sleep() {
  bool is_connecting = false;
  for (const auto& endpoint : endpoints_) {
    if (!endpoint->prepare_sleep()) {
      end_sleep(false);
      return false;
    }
    is_connecting |= endpoint->is_connecting();
  }
  if (home_.exchange->has_news()) {
    end_sleep(false);
    return false;
  }
  if (is_connecting) {
    // A peer that has not been verified cannot ring the bell yet.
    const itimerspec soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 1'000'000}};
    ::timerfd_settime(timer_.get(), 0, &soon, nullptr);
  }
  return true;
}

void ShmTransport::end_sleep(bool was_woken) {
  for (const auto& endpoint : endpoints_) endpoint->end_sleep();
  if (was_woken) look_at_descriptors();
}

void ShmTransport::look_at_descriptors() {
  idle_count_ = 0;
  std::array<epoll_event, 16> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t what = events[static_cast<std::size_t>(i)].data.u64;
    if (what == kBellEvent) {
      home_.bell.drain();
    } else if (what == kTimerEvent) {
      const itimerspec never{};
      ::timerfd_settime(timer_.get(), 0, &never, nullptr);
    } else {
      ShmEndpoint* const endpoint = find(static_cast<int>(what));
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, endpoint->process_descriptor(), nullptr);
      endpoint->note_death();
    }
  }
}

}  // namespace
}  // namespace shm

Result<std::vector<Rail>> discover_shm(const Options& options) {
  std::vector<Rail> rails;
  // Without a usable /proc no process finds the memory of another.
  if (!shm::own_address().is_ok()) return rails;
  for (std::int64_t i = 0; i < options.virtual_rails; ++i) {
    Rail rail;
    rail.name = i == 0 ? "shm" : "shm" + std::to_string(i);
    rail.kind = RailKind::kShm;
    rails.push_back(std::move(rail));
  }
  return rails;
}

Result<std::unique_ptr<Transport>> open_shm(const Rail& rail, const TransportContext& context,
                                            const Options&, Logger logger) {
  return shm::ShmTransport::open(rail, context, std::move(logger));
}

}  // namespace polyrail
