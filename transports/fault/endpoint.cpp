#include "transports/fault/endpoint.hpp"

#include <algorithm>
#include <utility>

#include "src/base/assert.hpp"

namespace polyrail::fault {
namespace {

constexpr std::size_t kMostHeld = 512;

}  // namespace

FaultEndpoint::FaultEndpoint(Endpoint& inner, Egress& egress, const FaultClock& clock,
                             std::size_t buffered_bytes, std::uint64_t seed)
    : Endpoint(inner.peer()),
      inner_(&inner),
      egress_(egress),
      clock_(clock),
      buffered_bytes_(buffered_bytes),
      fates_(seed),
      order_(~seed) {}

EndpointState FaultEndpoint::state() const {
  return inner_ == nullptr ? EndpointState::kDown : inner_->state();
}

void FaultEndpoint::expect(bool is_expected) {
  if (inner_ != nullptr) inner_->expect(is_expected);
}

void FaultEndpoint::discard_incoming(std::uint32_t operation) {
  if (inner_ != nullptr) inner_->discard_incoming(operation);
}

bool FaultEndpoint::is_full(std::uint64_t bytes) const {
  if (is_inner_busy_ || waiting_.size() + under_way_.size() >= kMostHeld) return true;
  return waiting_bytes_ > 0 && waiting_bytes_ + bytes > egress_.queue_bytes();
}

// Nothing has to be held: only the rate may stand in the way.
bool FaultEndpoint::is_direct() const {
  return egress_.clause().delay.count() == 0 && egress_.clause().reorder <= 1 && waiting_.empty() &&
         under_way_.empty();
}

double FaultEndpoint::draw_share() {
  return static_cast<double>(fates_() >> 11) * 0x1p-53;
}

FaultEndpoint::Fate FaultEndpoint::draw_fate() {
  Fate fate;
  const auto& clause = egress_.clause();
  if (clause.drop > 0) fate.is_dropped = draw_share() < clause.drop;
  if (clause.duplicate > 0) fate.is_duplicated = draw_share() < clause.duplicate;
  return fate;
}

Posted FaultEndpoint::put(const SliceHeader& header, const std::byte* source,
                          std::uint64_t cookie) {
  if (state() != EndpointState::kUp || last_words || is_full(header.bytes)) return Posted::kBusy;
  if (!next_fate_) next_fate_ = draw_fate();
  const bool is_whole = !next_fate_->is_dropped && !next_fate_->is_duplicated;
  if (is_whole && is_direct() && egress_.pass(header.bytes, clock_())) {
    const auto ticket = tickets_.open(cookie, 1);
    const auto posted = inner_->put(header, source, ticket);
    if (posted == Posted::kBusy) {
      tickets_.close(ticket);
      egress_.pass_back(header.bytes);
    } else {
      next_fate_.reset();
    }
    return posted;
  }
  Held held;
  held.is_dropped = next_fate_->is_dropped;
  held.copy_count = next_fate_->is_duplicated && !held.is_dropped ? 2 : 1;
  held.header = header;
  held.source = source;
  held.ticket = tickets_.open(cookie, held.copy_count);
  next_fate_.reset();
  const bool is_buffered = header.bytes <= buffered_bytes_;
  if (is_buffered) {
    auto& bytes = tickets_.bytes(held.ticket);
    bytes.assign(source, source + header.bytes);
    held.source = bytes.data();
  }
  hold(std::move(held));
  return is_buffered ? Posted::kBuffered : Posted::kPosted;
}

Posted FaultEndpoint::send_control(std::span<const std::byte> message) {
  PR_ASSERT(message.size() <= kMaxControlBytes);
  if (state() != EndpointState::kUp || last_words || is_full(message.size())) return Posted::kBusy;
  if (is_direct() && egress_.pass(message.size(), clock_())) {
    const auto posted = inner_->send_control(message);
    if (posted == Posted::kBusy) egress_.pass_back(message.size());
    return posted;
  }
  Held held;
  held.is_control = true;
  held.message.assign(message.begin(), message.end());
  hold(std::move(held));
  return Posted::kBuffered;
}

void FaultEndpoint::abandon() {
  if (inner_ != nullptr) inner_->abandon();
  fail();
  landing_count = 0;
  last_words.reset();
}

void FaultEndpoint::hold(Held held) {
  const auto bytes = held.bytes();
  waiting_bytes_ += bytes;
  waiting_.push_back(std::move(held));
  const auto now = clock_();
  egress_.wait(*this, bytes, now);
  egress_.advance(now);  // the delay begins now if its turn is now
}

void FaultEndpoint::depart(Time now) {
  auto held = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= held.bytes();
  held.arrives = now + egress_.clause().delay;
  const int copy_count = std::exchange(held.copy_count, 1);
  for (int i = 1; i < copy_count; ++i) under_way_.push_back(held);
  under_way_.push_back(std::move(held));
}

bool FaultEndpoint::deliver(Time now) {
  bool has_moved = false;
  is_inner_busy_ = false;
  while (!egress_.is_shut() && !under_way_.empty() && under_way_.front().arrives <= now) {
    const auto picked = under_way_.begin() + static_cast<std::ptrdiff_t>(pick(now));
    if (!hand_over(*picked)) {
      is_inner_busy_ = true;
      break;
    }
    under_way_.erase(picked);
    has_moved = true;
  }
  return has_moved;
}

// A control stays where it is among the slices: only their order is nobody's promise.
std::size_t FaultEndpoint::pick(Time now) {
  const auto most = static_cast<std::size_t>(std::max(1, egress_.clause().reorder));
  std::size_t count = 0;
  for (const auto& held : under_way_) {
    if (count == most || held.is_control || held.arrives > now) break;
    ++count;
  }
  return count <= 1 ? 0 : order_() % count;
}

bool FaultEndpoint::hand_over(const Held& held) {
  if (held.is_dropped) {
    tickets_.close(held.ticket);
    return true;
  }
  if (state() != EndpointState::kUp) return true;  // nobody to hand it to any more
  if (held.is_control) return inner_->send_control(held.message) != Posted::kBusy;
  return inner_->put(held.header, held.source, held.ticket) != Posted::kBusy;
}

Time FaultEndpoint::due() const {
  if (egress_.is_shut() || is_inner_busy_ || under_way_.empty()) return kNever;
  return under_way_.front().arrives;
}

}  // namespace polyrail::fault
