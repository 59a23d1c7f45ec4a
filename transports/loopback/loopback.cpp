#include "transports/loopback/loopback.hpp"

#include <optional>

#include "src/base/assert.hpp"
#include "src/base/sleep_set.hpp"
#include "transports/loopback/directory.hpp"
#include "transports/loopback/endpoint.hpp"

namespace polyrail {
namespace loopback {
namespace {

// Memory of one process needs no announcement.
class PlainMemory final : public MemoryRegion {};

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(Rail rail, const TransportContext& context, SleepSet sleep,
                    std::shared_ptr<Waker> waker, Logger logger)
      : rail_(std::move(rail)),
        context_(context),
        logger_(std::move(logger)),
        sleep_(std::move(sleep)),
        waker_(std::move(waker)),
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

  int descriptor() const override { return sleep_.descriptor(); }
  bool prepare_sleep() override;
  void end_sleep(bool was_woken) override;

 private:
  void set_deadline();

  const Rail rail_;
  const TransportContext context_;
  const Logger logger_;
  SleepSet sleep_;  // on the waker and the deadline of the next connection that would be late
  const std::shared_ptr<Waker> waker_;  // shared with the wires, which peers hold as well
  const PortAddress address_;
  std::vector<std::unique_ptr<LoopbackEndpoint>> endpoints_;
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
  set_deadline();
  return static_cast<Endpoint*>(endpoints_.back().get());
}

bool LoopbackTransport::progress(Sink& sink) {
  bool has_moved = false;
  // By index: a callback may connect another peer.
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    auto& endpoint = *endpoints_[i];
    const bool was_connecting = endpoint.is_connecting();
    has_moved |= endpoint.progress(sink);
    if (was_connecting && !endpoint.is_connecting()) set_deadline();
  }
  return has_moved;
}

void LoopbackTransport::set_deadline() {
  std::optional<Clock::time_point> first;
  for (const auto& endpoint : endpoints_) {
    if (!endpoint->is_connecting()) continue;
    if (!first || endpoint->deadline() < *first) first = endpoint->deadline();
  }
  sleep_.set_deadline(first);
}

bool LoopbackTransport::prepare_sleep() {
  waker_->is_asleep.store(true);
  for (const auto& endpoint : endpoints_) {
    if (endpoint->has_news()) {
      end_sleep(false);
      return false;
    }
  }
  return true;
}

void LoopbackTransport::end_sleep(bool) {
  waker_->is_asleep.store(false);
  // Even if nobody seems to have woken us: a waker may be between the flag and the event.
  lower_event(waker_->event.get());
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
  const auto failed = [&](const Status& status) {
    return Status(status.code(), "open rail '" + rail.name + "': " + status.message());
  };
  auto sleep = SleepSet::open();
  if (!sleep.is_ok()) return failed(sleep.status());
  auto event = open_event();
  if (!event.is_ok()) return failed(event.status());
  const auto watched = sleep.value().watch(event.value().get());
  if (!watched.is_ok()) return failed(watched);
  // Shared with the wires, which peers hold as well: it outlives the last one that may wake us.
  auto waker = std::make_shared<loopback::Waker>(std::move(event).value());
  return std::unique_ptr<Transport>(std::make_unique<loopback::LoopbackTransport>(
      rail, context, std::move(sleep).value(), std::move(waker), std::move(logger)));
}

}  // namespace polyrail
