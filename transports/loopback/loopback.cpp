#include "transports/loopback/loopback.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "src/base/assert.hpp"
#include "src/base/file_descriptor.hpp"
#include "transports/loopback/directory.hpp"
#include "transports/loopback/endpoint.hpp"

namespace polyrail {
namespace loopback {
namespace {

// Memory of one process needs no announcement.
class PlainMemory final : public MemoryRegion {};

// What a transport sleeps on: an event that peers raise, a timer for deadlines, an epoll over both.
struct SleepDescriptors {
  FileDescriptor event;
  FileDescriptor timer;
  FileDescriptor epoll;
};

Result<SleepDescriptors> open_sleep_descriptors() {
  SleepDescriptors opened{
      FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      FileDescriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      FileDescriptor(::epoll_create1(EPOLL_CLOEXEC))};
  epoll_event event{};
  event.events = EPOLLIN;
  if (!opened.event.is_open() || !opened.timer.is_open() || !opened.epoll.is_open() ||
      ::epoll_ctl(opened.epoll.get(), EPOLL_CTL_ADD, opened.event.get(), &event) != 0 ||
      ::epoll_ctl(opened.epoll.get(), EPOLL_CTL_ADD, opened.timer.get(), &event) != 0) {
    return Status(StatusCode::kSystemError, "open a loopback rail: make descriptors to sleep on: " +
                                                std::system_category().message(errno));
  }
  return opened;
}

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(Rail rail, const TransportContext& context, SleepDescriptors descriptors,
                    Logger logger)
      : rail_(std::move(rail)),
        context_(context),
        logger_(std::move(logger)),
        timer_(std::move(descriptors.timer)),
        epoll_(std::move(descriptors.epoll)),
        waker_(std::make_shared<Waker>(std::move(descriptors.event))),
        address_(Directory::instance().open(context, waker_)) {}

  ~LoopbackTransport() override {
    Directory::instance().close(address_.id);
    endpoints_.clear();  // each closes its wire; after that no peer reads this side's memory
  }

  const Rail& rail() const override { return rail_; }
  RailCaps caps() const override {
    return {.can_stream = true, .buffered_bytes = LoopbackEndpoint::kBufferedBytes};
  }
  std::string address() const override { return to_text(address_); }
  Result<Endpoint*> connect(int peer, std::string_view address) override;
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte>) override {
    return std::unique_ptr<MemoryRegion>(std::make_unique<PlainMemory>());
  }
  bool progress(Sink& sink) override;

  int descriptor() const override { return epoll_.get(); }
  bool prepare_sleep() override;
  void end_sleep() override;

 private:
  void arm_timer();

  const Rail rail_;
  const TransportContext context_;
  const Logger logger_;
  const FileDescriptor timer_;  // of the next connection that would be late
  const FileDescriptor epoll_;
  const std::shared_ptr<Waker> waker_;  // shared with the wires, which peers hold as well
  const PortAddress address_;
  std::vector<std::unique_ptr<LoopbackEndpoint>> endpoints_;
  std::size_t connecting_count_ = 0;
};

Result<Endpoint*> LoopbackTransport::connect(int peer, std::string_view address) {
  auto parsed = parse_port_address(address);
  if (!parsed.is_ok()) return parsed.status();
  if (peer < 0 || peer >= context_.rank_count || peer == context_.rank) {
    return Status(StatusCode::kInvalidArgument,
                  "connect over rail '" + rail_.name + "': no peer " + std::to_string(peer));
  }
  for (const auto& endpoint : endpoints_) PR_ASSERT(endpoint->peer() != peer);
  auto end = Directory::instance().connect(address_.id, peer, parsed.value());
  const auto deadline = Clock::now() + std::chrono::milliseconds(context_.connect_timeout_ms);
  endpoints_.push_back(
      end.is_ok()
          ? std::make_unique<LoopbackEndpoint>(peer, rail_.name, std::move(end).value(), deadline)
          : std::make_unique<LoopbackEndpoint>(peer, rail_.name, end.status()));
  logger_->debug("rail '{}': connecting to rank {}", rail_.name, peer);
  ++connecting_count_;
  arm_timer();
  return static_cast<Endpoint*>(endpoints_.back().get());
}

bool LoopbackTransport::progress(Sink& sink) {
  bool has_moved = false;
  // By index: a callback may connect another peer.
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    auto& endpoint = *endpoints_[i];
    const bool was_connecting = endpoint.is_connecting();
    has_moved |= endpoint.progress(sink);
    if (was_connecting && !endpoint.is_connecting()) {
      --connecting_count_;
      arm_timer();
    }
  }
  return has_moved;
}

// Sets the timer to the first deadline, or stops it; either way what it had to say is forgotten.
void LoopbackTransport::arm_timer() {
  itimerspec spec{};
  if (connecting_count_ > 0) {
    auto first = Clock::time_point::max();
    for (const auto& endpoint : endpoints_) {
      if (endpoint->is_connecting()) first = std::min(first, endpoint->deadline());
    }
    const auto since_start =
        std::max<std::chrono::nanoseconds>(first.time_since_epoch(), std::chrono::nanoseconds(1));
    spec.it_value.tv_sec = since_start.count() / 1'000'000'000;
    spec.it_value.tv_nsec = since_start.count() % 1'000'000'000;
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

bool LoopbackTransport::prepare_sleep() {
  waker_->is_asleep.store(true);
  for (const auto& endpoint : endpoints_) {
    if (endpoint->has_news()) {
      end_sleep();
      return false;
    }
  }
  return true;
}

void LoopbackTransport::end_sleep() {
  waker_->is_asleep.store(false);
  std::uint64_t count = 0;
  // Even if nobody seems to have woken us: a waker may be between the flag and the event.
  [[maybe_unused]] const auto drained = ::read(waker_->event.get(), &count, sizeof(count));
}

}  // namespace
}  // namespace loopback

Result<std::vector<Rail>> discover_loopback(const Options& options) {
  std::vector<Rail> rails;
  for (std::int64_t i = 0; i < options.virtual_rails; ++i) {
    Rail rail;
    rail.name = i == 0 ? "loopback" : "loopback" + std::to_string(i);
    rail.kind = RailKind::kLoopback;
    rails.push_back(std::move(rail));
  }
  return rails;
}

Result<std::unique_ptr<Transport>> open_loopback(const Rail& rail, const TransportContext& context,
                                                 const Options&, Logger logger) {
  auto descriptors = loopback::open_sleep_descriptors();
  if (!descriptors.is_ok()) return descriptors.status();
  return std::unique_ptr<Transport>(std::make_unique<loopback::LoopbackTransport>(
      rail, context, std::move(descriptors).value(), std::move(logger)));
}

}  // namespace polyrail
