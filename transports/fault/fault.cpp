#include "transports/fault/fault.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "src/base/assert.hpp"
#include "src/base/sleep_set.hpp"
#include "transports/fault/egress.hpp"
#include "transports/fault/endpoint.hpp"

namespace polyrail {
namespace fault {
namespace {

// Owned by the engine and, until the rail fails, by the transport below: whoever goes first.
struct HeldRegion {
  std::unique_ptr<MemoryRegion> inner;
};

class FaultRegion final : public MemoryRegion {
 public:
  explicit FaultRegion(std::shared_ptr<HeldRegion> held) : held_(std::move(held)) {}

 private:
  const std::shared_ptr<HeldRegion> held_;  // the transport keeps a weak reference
};

std::uint64_t seed_of(const FaultClause& clause, std::string_view rail_name, int peer) {
  std::uint64_t seed = 14695981039346656037u ^ clause.seed;  // FNV-1a
  for (const char character : rail_name) {
    seed = (seed ^ static_cast<unsigned char>(character)) * 1099511628211u;
  }
  return (seed ^ static_cast<std::uint64_t>(peer)) * 1099511628211u;
}

class FaultTransport final : public Transport {
 public:
  FaultTransport(std::unique_ptr<Transport> inner, const FaultClause& clause, FaultControl* control,
                 FaultClock clock, SleepSet sleep, FileDescriptor event);
  ~FaultTransport() override;

  const Rail& rail() const override { return rail_; }
  RailCaps caps() const override { return caps_; }
  std::string address() const override { return address_; }
  Result<Endpoint*> connect(int peer, std::string_view address) override;
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> memory) override;
  bool progress(Sink& sink) override;

  int descriptor() const override { return can_sleep_ ? sleep_.descriptor() : -1; }
  bool prepare_sleep() override;
  void end_sleep(bool was_woken) override;

 private:
  class Relay;  // the sink of the transport below

  bool obey(Sink& sink);
  bool fail_rail(Sink& sink, const Status& why);
  bool fail_endpoints(Sink& sink);
  void watch_inner(bool is_watching);
  bool is_silent() const { return orders_.hole == BlackHole::kBoth; }
  Time due() const;

  const Rail rail_;
  const RailCaps caps_;
  const std::string address_;
  FaultControl* const control_;
  const FaultClock clock_;
  SleepSet sleep_;
  const FileDescriptor event_;  // raised by the control
  bool is_watching_ = true;     // the descriptor of the transport below
  const bool can_sleep_;        // the transport below can
  std::uint64_t orders_version_ = 0;
  FaultControl::Orders orders_;
  Egress egress_;
  std::vector<std::weak_ptr<HeldRegion>> regions_;
  std::map<int, std::unique_ptr<FaultEndpoint>> endpoints_;  // by peer
  std::unique_ptr<Transport> inner_;                         // null once the rail has failed
};

// Translates what the transport below says about its endpoints into calls about the decorated ones.
class FaultTransport::Relay final : public Sink {
 public:
  Relay(FaultTransport& transport, Sink& sink) : transport_(transport), sink_(sink) {}

  void on_up(Endpoint& inner) override {
    auto& endpoint = of(inner);
    if (!endpoint.has_failed()) sink_.on_up(endpoint);
  }
  void on_down(Endpoint& inner, const Status& why) override {
    auto& endpoint = of(inner);
    if (endpoint.has_failed()) return;
    endpoint.landing_count = 0;
    endpoint.last_words.reset();
    sink_.on_down(endpoint, why);
  }
  Landing on_slice(Endpoint& inner, const SliceHeader& header) override {
    auto& endpoint = of(inner);
    if (endpoint.has_failed() || endpoint.last_words) return {};
    const auto landing = sink_.on_slice(endpoint, header);
    if (landing.how == Landing::How::kInto || landing.how == Landing::How::kStream) {
      ++endpoint.landing_count;
    }
    return landing;
  }
  void on_landed(Endpoint& inner, const SliceHeader& header) override {
    auto& endpoint = of(inner);
    --endpoint.landing_count;
    sink_.on_landed(endpoint, header);
  }
  void on_bytes(Endpoint& inner, const SliceHeader& header, std::uint32_t offset_bytes,
                std::span<const std::byte> bytes) override {
    auto& endpoint = of(inner);
    if (offset_bytes + bytes.size() == header.bytes) --endpoint.landing_count;
    sink_.on_bytes(endpoint, header, offset_bytes, bytes);
  }
  void on_acknowledged(Endpoint& inner, const Acknowledgement& of_ticket) override {
    auto& endpoint = of(inner);
    const auto done = endpoint.acknowledge(of_ticket);
    if (done && !endpoint.has_failed()) sink_.on_acknowledged(endpoint, *done);
  }
  void on_control(Endpoint& inner, std::span<const std::byte> message) override {
    auto& endpoint = of(inner);
    if (!endpoint.has_failed()) sink_.on_control(endpoint, message);
  }

 private:
  FaultEndpoint& of(const Endpoint& inner) { return *transport_.endpoints_.at(inner.peer()); }

  FaultTransport& transport_;
  Sink& sink_;
};

FaultTransport::FaultTransport(std::unique_ptr<Transport> inner, const FaultClause& clause,
                               FaultControl* control, FaultClock clock, SleepSet sleep,
                               FileDescriptor event)
    : rail_(inner->rail()),
      caps_(inner->caps()),
      address_(inner->address()),
      control_(control),
      clock_(std::move(clock)),
      sleep_(std::move(sleep)),
      event_(std::move(event)),
      can_sleep_(inner->descriptor() >= 0),
      egress_(clause, clock_()),
      inner_(std::move(inner)) {
  if (control_ != nullptr) control_->attach(event_.get());
}

FaultTransport::~FaultTransport() {
  if (control_ != nullptr) control_->detach(event_.get());
}

Result<Endpoint*> FaultTransport::connect(int peer, std::string_view address) {
  if (!inner_) {
    return Status(StatusCode::kSystemError,
                  "connect over rail '" + rail_.name + "': a fault has taken it down");
  }
  auto endpoint = inner_->connect(peer, address);
  if (!endpoint.is_ok()) return endpoint;
  auto& slot = endpoints_[peer];
  slot = std::make_unique<FaultEndpoint>(*endpoint.value(), egress_, clock_, caps_.buffered_bytes,
                                         seed_of(egress_.clause(), rail_.name, peer));
  return static_cast<Endpoint*>(slot.get());
}

Result<std::unique_ptr<MemoryRegion>> FaultTransport::register_memory(std::span<std::byte> memory) {
  auto held = std::make_shared<HeldRegion>();
  if (inner_) {
    auto region = inner_->register_memory(memory);
    if (!region.is_ok()) return region;
    held->inner = std::move(region).value();
    std::erase_if(regions_, [](const auto& known) { return known.expired(); });
    regions_.push_back(held);
  }
  return std::unique_ptr<MemoryRegion>(std::make_unique<FaultRegion>(std::move(held)));
}

bool FaultTransport::progress(Sink& sink) {
  bool has_moved = obey(sink);
  if (!inner_) return has_moved;
  const auto now = clock_();
  has_moved |= egress_.advance(now);
  for (auto& [peer, endpoint] : endpoints_) has_moved |= endpoint->deliver(now);
  if (!is_silent()) {
    Relay relay(*this, sink);
    has_moved |= inner_->progress(relay);
  }
  has_moved |= fail_endpoints(sink);
  const auto down_after = egress_.clause().down_after_bytes;
  if (down_after > 0 && egress_.sent_bytes() >= down_after) {
    has_moved |= fail_rail(sink, Status(StatusCode::kSystemError,
                                        "rail '" + rail_.name + "': a fault took it down after " +
                                            std::to_string(egress_.sent_bytes()) + " bytes"));
  }
  return has_moved;
}

// Takes in new commands; true if one of them had an effect on endpoints.
bool FaultTransport::obey(Sink& sink) {
  if (control_ == nullptr || control_->version() == orders_version_) return false;
  orders_version_ = control_->version();
  if (!inner_) return false;
  orders_ = control_->orders();
  const auto now = clock_();
  if (orders_.bytes_per_s) egress_.set_rate(*orders_.bytes_per_s, now);
  egress_.set_shut(orders_.hole != BlackHole::kNone, now);
  watch_inner(!is_silent());
  if (orders_.failure) return fail_rail(sink, *orders_.failure);
  for (const auto& [peer, why] : orders_.peer_failures) {
    const auto found = endpoints_.find(peer);
    if (found == endpoints_.end() || found->second->state() == EndpointState::kDown) continue;
    found->second->last_words = why;
  }
  return fail_endpoints(sink);
}

bool FaultTransport::fail_endpoints(Sink& sink) {
  bool has_failed = false;
  for (auto& [peer, endpoint] : endpoints_) {
    if (!endpoint->last_words || endpoint->landing_count > 0) continue;
    const auto why = *std::exchange(endpoint->last_words, std::nullopt);
    endpoint->fail();
    sink.on_down(*endpoint, why);
    has_failed = true;
  }
  return has_failed;
}

bool FaultTransport::fail_rail(Sink& sink, const Status& why) {
  watch_inner(false);
  for (const auto& region : regions_) {
    if (const auto held = region.lock()) held->inner.reset();
  }
  std::vector<FaultEndpoint*> lost;
  for (auto& [peer, endpoint] : endpoints_) {
    if (endpoint->state() != EndpointState::kDown) lost.push_back(endpoint.get());
    endpoint->fail();
  }
  // First of all: nothing is written to the engine's memory from here on.
  inner_.reset();
  for (auto* endpoint : lost) sink.on_down(*endpoint, why);
  return true;
}

// What a silent or failed rail has to say must not wake anybody.
void FaultTransport::watch_inner(bool is_watching) {
  if (!can_sleep_ || is_watching == is_watching_) return;
  is_watching_ = is_watching;
  if (!is_watching) return sleep_.forget(inner_->descriptor());
  const auto status = sleep_.watch(inner_->descriptor());
  PR_ASSERT(status.is_ok());  // it was watched before
}

Time FaultTransport::due() const {
  if (!inner_) return kNever;
  auto first = egress_.due();
  for (const auto& [peer, endpoint] : endpoints_) first = std::min(first, endpoint->due());
  return first;
}

bool FaultTransport::prepare_sleep() {
  if (inner_ && !is_silent() && !inner_->prepare_sleep()) return false;
  const bool has_orders = control_ != nullptr && control_->version() != orders_version_;
  const auto next = due();
  const auto now = clock_();
  if (has_orders || next <= now) {
    end_sleep(false);
    return false;
  }
  // The distance is measured by the clock in use, the time to wake is told by the true one.
  std::optional<Time> deadline;
  if (next != kNever) deadline = SleepSet::Clock::now() + (next - now);
  sleep_.set_deadline(deadline);
  return true;
}

void FaultTransport::end_sleep(bool was_woken) {
  if (inner_ && !is_silent()) inner_->end_sleep(was_woken);
  if (control_ != nullptr) lower_event(event_.get());
}

}  // namespace
}  // namespace fault

Result<std::unique_ptr<Transport>> with_fault(std::unique_ptr<Transport> inner,
                                              const FaultClause& clause, FaultControl* control,
                                              FaultClock clock) {
  auto sleep = SleepSet::open();
  if (!sleep.is_ok()) return sleep.status();
  auto event = open_event();
  if (!event.is_ok()) return event.status();
  for (const int descriptor : {event.value().get(), inner->descriptor()}) {
    if (descriptor < 0) continue;
    const auto watched = sleep.value().watch(descriptor);
    if (!watched.is_ok()) return watched;
  }
  return std::unique_ptr<Transport>(
      std::make_unique<fault::FaultTransport>(std::move(inner), clause, control, std::move(clock),
                                              std::move(sleep).value(), std::move(event).value()));
}

Result<std::unique_ptr<Transport>> decorate(std::unique_ptr<Transport> transport,
                                            const Options& options) {
  const auto spec = parse_fault_spec(options.fault);
  if (!spec.is_ok()) return spec.status();
  for (const auto& clause : spec.value().clauses) {
    if (!matches(clause, transport->rail().name)) continue;
    auto decorated = with_fault(std::move(transport), clause);
    if (!decorated.is_ok()) return decorated;
    transport = std::move(decorated).value();
  }
  return transport;
}

}  // namespace polyrail
