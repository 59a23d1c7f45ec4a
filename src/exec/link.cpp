#include "src/exec/link.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/base/assert.hpp"
#include "src/base/clock.hpp"

namespace polyrail {
namespace {

constexpr std::uint64_t kAlign = 64;  // slices start at multiples of this in a put
constexpr std::uint64_t kLeastSlice = 16 * 1024;
constexpr double kSliceUs = 1000;  // a slice is about so much of a rail's time
// Bytes under way: so much of a rail's time, of a slow one more, since its acknowledgements wait
// behind what systems take at once of any rail.
constexpr double kWindowUs = 12000;
constexpr double kSlowWindowUs = 24000;
constexpr double kSlowWindowBytes = 384 * 1024;
constexpr std::uint64_t kLeastWindow = 64 * 1024;
constexpr std::uint64_t kLeastToBalance = 16 * 1024;  // less stays where the plan put it
constexpr std::uint64_t kLeastMove = 256;
constexpr double kTolerance = 0.01;  // of the predicted time: not worth moving
constexpr double kToleranceUs = 5;

std::uint64_t round_down(double bytes) {
  return bytes <= 0 ? 0 : static_cast<std::uint64_t>(bytes) / kAlign * kAlign;
}

}  // namespace

Link::Link(int peer, int plane_count, Listener& listener)
    : peer_(peer), listener_(listener), rails_(plane_count) {}

void Link::add_rail(int plane, Endpoint* endpoint, const RailCaps& caps, double latency_us,
                    double bytes_per_s) {
  RailQueue& rail = rails_[plane];
  PR_ASSERT(rail.endpoint == nullptr);
  rail.endpoint = endpoint;
  rail.caps = caps;
  rail.rate.reset(latency_us, bytes_per_s);
  rail.flights.resize(kFlights);
  planes_.push_back(plane);
}

bool Link::can_stream(const Endpoint& endpoint) const {
  for (int plane : planes_) {
    if (rails_[plane].endpoint == &endpoint) return rails_[plane].caps.can_stream;
  }
  return false;
}

Endpoint* Link::best_endpoint() {
  RailQueue* best = nullptr;
  for (int plane : planes_) {
    RailQueue& rail = rails_[plane];
    if (!rail.is_usable()) continue;
    if (best == nullptr || rail.rate.latency_us() < best->rate.latency_us()) best = &rail;
  }
  return best == nullptr ? nullptr : best->endpoint;
}

void Link::reserve(std::size_t put_count) {
  for (int plane : planes_) rails_[plane].pieces.reserve(2 * put_count + 16);
}

int Link::best_plane(std::uint64_t bytes) const {
  int best = planes_.front();
  double best_us = 1e300;
  for (int plane : planes_) {
    const RailQueue& rail = rails_[plane];
    if (!rail.is_usable()) continue;
    const auto ahead = static_cast<double>(rail.queued_bytes + rail.flight_bytes + bytes);
    const double end_us = rail.rate.latency_us() + ahead / rail.rate.bytes_per_us();
    if (end_us < best_us) {
      best = plane;
      best_us = end_us;
    }
  }
  return best;
}

void Link::push(RailQueue& rail, const Piece& piece) {
  // While messages keep coming the queue may never be empty.
  constexpr std::size_t kMostSent = 256;
  if (rail.head >= kMostSent && rail.head * 2 >= rail.pieces.size()) {
    rail.pieces.erase(rail.pieces.begin(),
                      rail.pieces.begin() + static_cast<std::ptrdiff_t>(rail.head));
    rail.head = 0;
  }
  rail.pieces.push_back(piece);
  rail.queued_bytes += piece.end - piece.offset;
}

void Link::post(const Put& put, int plane) {
  RailQueue* rail = &rails_[plane];
  if (!rail->is_usable()) {
    for (int other : planes_) {
      if (rails_[other].is_usable()) rail = &rails_[other];
    }
  }
  push(*rail, {put, 0, put.bytes});
  queued_bytes_ += put.bytes;
  ++queued_puts_;
  if (put.bytes >= kLeastToBalance) wants_rebalance_ = true;
}

std::uint64_t Link::slice_bytes(const RailQueue& rail) const {
  const std::uint64_t bytes = round_down(rail.rate.bytes_per_us() * kSliceUs);
  // Longer than what a transport copies: such slices are acknowledged late and teach no rate.
  const std::uint64_t least = std::max<std::uint64_t>(kLeastSlice, 2 * rail.caps.buffered_bytes);
  return std::clamp<std::uint64_t>(bytes, least, std::max(least, rail.caps.best_slice_bytes));
}

std::uint64_t Link::window_bytes(const RailQueue& rail) const {
  const double bytes_per_us = rail.rate.recent_best_bytes_per_us();
  const double slow = std::min(bytes_per_us * kSlowWindowUs, kSlowWindowBytes);
  return std::max(round_down(std::max(bytes_per_us * kWindowUs, slow)), kLeastWindow);
}

void Link::settle(double now_us) {
  for (int plane : planes_) {
    RailQueue& rail = rails_[plane];
    if (rail.has_news) rail.rate.settle(now_us, rail.flight_count == 0);
    rail.has_news = false;
  }
  has_news_ = false;
}

void Link::pump(double now_us) {
  if (has_news_) settle(now_us);
  if (!has_work()) return;
  if (wants_rebalance_ && is_rebalancing_ && planes_.size() > 1) rebalance(now_us);
  wants_rebalance_ = false;
  for (int plane : planes_) {
    RailQueue& rail = rails_[plane];
    if (rail.is_empty() || !rail.is_usable()) continue;
    if (pump_rail(rail, now_us) && rail.is_empty() && queued_bytes_ > 0) wants_rebalance_ = true;
  }
}

bool Link::pump_rail(RailQueue& rail, double now_us) {
  bool is_any = false;
  const std::uint64_t window = window_bytes(rail);
  while (!rail.is_empty()) {
    Piece& piece = rail.pieces[rail.head];
    const std::uint64_t left = piece.end - piece.offset;
    if (rail.flight_bytes > 0 && rail.flight_bytes + std::min(left, kLeastSlice) > window) break;
    if (rail.next_cookie - rail.first_cookie == kFlights) break;
    // The last slice may be half as long again, so that no crumb is left over.
    const std::uint64_t most = slice_bytes(rail);
    const std::uint64_t bytes = left <= most + most / 2 ? left : most;
    SliceHeader header = piece.put.header;
    header.offset_bytes = piece.offset;
    header.bytes = static_cast<std::uint32_t>(bytes);
    const std::uint64_t cookie = rail.next_cookie;
    const Posted posted = rail.endpoint->put(header, piece.put.source + piece.offset, cookie);
    if (posted == Posted::kBusy) break;
    is_any = true;
    if (rail.flight_count == 0) rail.rate.on_busy(now_us);
    ++rail.next_cookie;
    rail.flights[cookie % kFlights] = {.put = piece.put,
                                       .offset = piece.offset,
                                       .bytes = header.bytes,
                                       .is_open = true,
                                       .is_buffered = posted == Posted::kBuffered,
                                       .is_after_gap = std::exchange(rail.was_dry, false)};
    rail.flight_bytes += bytes;
    ++rail.flight_count;
    ++outstanding_count_;
    if (posted == Posted::kPosted) ++posted_count_;
    rail.queued_bytes -= bytes;
    queued_bytes_ -= bytes;
    piece.offset += bytes;
    const std::uint32_t put = piece.put.put;
    if (piece.offset == piece.end) {
      --queued_puts_;
      if (++rail.head == rail.pieces.size()) {
        rail.pieces.clear();
        rail.head = 0;
        rail.was_dry = true;
      }
    }
    if (posted == Posted::kBuffered) {
      listener_.on_put_progress(put, header.offset_bytes, bytes);
    }
  }
  return is_any;
}

void Link::on_acknowledged(Endpoint& endpoint, const Acknowledgement& done) {
  const std::uint64_t cookie = done.cookie;
  if ((cookie & kStartUpCookie) != 0) return;
  for (int plane : planes_) {
    RailQueue& rail = rails_[plane];
    if (rail.endpoint != &endpoint) continue;
    Flight& flight = rail.flights[cookie % kFlights];
    PR_ASSERT(flight.is_open && cookie >= rail.first_cookie && cookie < rail.next_cookie);
    flight.is_open = false;
    rail.flight_bytes -= flight.bytes;
    rail.bytes_sent += flight.bytes;
    --rail.flight_count;
    --outstanding_count_;
    if (!flight.is_buffered) --posted_count_;
    while (rail.first_cookie < rail.next_cookie &&
           !rail.flights[rail.first_cookie % kFlights].is_open) {
      ++rail.first_cookie;
    }
    // Small slices are acknowledged when it suits the peer: their time says nothing.
    const bool is_time_known = done.landed_us >= 0 || flight.is_buffered;
    rail.rate.on_acknowledged({.bytes = flight.bytes,
                               .landed_us = is_time_known ? done.landed_us : now_us(),
                               .ahead_bytes = done.ahead_bytes,
                               .is_after_gap = flight.is_after_gap,
                               .is_tainted = done.was_stalled || flight.is_buffered});
    rail.has_news = has_news_ = true;
    if (!flight.is_buffered) {
      listener_.on_put_progress(flight.put.put, flight.offset, flight.bytes);
    }
    return;
  }
}

// Water-filling: the level t at which the rails could move all queued bytes by time t, each rail r
// being free to take (t - latency_r) * rate_r less what it has under way.
void Link::rebalance(double now_us) {
  double total = 0;
  for (int plane : planes_) {
    const RailQueue& rail = rails_[plane];
    if (rail.is_usable()) total += static_cast<double>(rail.queued_bytes);
  }
  if (total < static_cast<double>(kLeastToBalance)) return;

  const auto start_us = [now_us](const RailQueue& rail) {
    return rail.rate.latency_us() +
           rail.rate.unlanded_bytes(rail.flight_bytes, now_us) / rail.rate.bytes_per_us();
  };
  // Start with all rails and leave out those whose floor lies above the level, which lowers it.
  double level_us = 1e300;
  for (std::size_t round = 0; round <= planes_.size(); ++round) {
    double rate = 0;
    double volume = total;
    for (int plane : planes_) {
      const RailQueue& rail = rails_[plane];
      if (!rail.is_usable() || start_us(rail) >= level_us) continue;
      rate += rail.rate.bytes_per_us();
      volume += start_us(rail) * rail.rate.bytes_per_us();
    }
    if (rate == 0) return;
    level_us = volume / rate;
  }
  const auto wanted = [&](const RailQueue& rail) {
    return rail.is_usable() ? std::max(0.0, (level_us - start_us(rail)) * rail.rate.bytes_per_us())
                            : 0.0;
  };
  for (;;) {
    RailQueue* most = nullptr;
    RailQueue* least = nullptr;
    double surplus_us = 0;
    double lack_us = 0;
    for (int plane : planes_) {
      RailQueue& rail = rails_[plane];
      if (!rail.is_usable()) continue;
      const double over =
          (static_cast<double>(rail.queued_bytes) - wanted(rail)) / rail.rate.bytes_per_us();
      if (over > surplus_us) {
        surplus_us = over;
        most = &rail;
      }
      if (over < lack_us) {
        lack_us = over;
        least = &rail;
      }
    }
    const double tolerance_us = std::max(kToleranceUs, kTolerance * level_us);
    if (most == nullptr || least == nullptr || surplus_us < tolerance_us) return;
    const double bytes =
        std::min(surplus_us * most->rate.bytes_per_us(), -lack_us * least->rate.bytes_per_us());
    const std::uint64_t moved = round_down(bytes);
    if (moved < kLeastMove) return;
    if (move_bytes(*most, *least, moved) == 0) return;
  }
}

// Takes bytes from the tail of one queue; what was planned to go last is moved first.
std::uint64_t Link::move_bytes(RailQueue& from, RailQueue& to, std::uint64_t bytes) {
  std::uint64_t moved_bytes = 0;
  while (moved_bytes < bytes && !from.is_empty()) {
    Piece& piece = from.pieces.back();
    Piece moved = piece;
    const std::uint64_t wanted = bytes - moved_bytes;
    const std::uint64_t cut = wanted < piece.end ? (piece.end - wanted) / kAlign * kAlign : 0;
    if (cut <= piece.offset) {
      from.pieces.pop_back();
      if (from.is_empty()) {
        from.pieces.clear();
        from.head = 0;
      }
    } else {
      moved.offset = piece.end = cut;
      ++queued_puts_;
    }
    const std::uint64_t size = moved.end - moved.offset;
    from.queued_bytes -= size;
    push(to, moved);
    moved_bytes += size;
  }
  return moved_bytes;
}

Status Link::on_down(Endpoint& endpoint, const Status& why) {
  for (int plane : planes_) {
    RailQueue& rail = rails_[plane];
    if (rail.endpoint != &endpoint) continue;
    RailQueue* heir = nullptr;
    for (int other : planes_) {
      if (other != plane && rails_[other].is_usable()) heir = &rails_[other];
    }
    const bool is_needed = rail.flight_count > 0 || !rail.is_empty();
    bool has_lost_copies = false;  // of slices whose source may have changed since
    for (std::uint64_t cookie = rail.first_cookie; cookie < rail.next_cookie; ++cookie) {
      Flight& flight = rail.flights[cookie % kFlights];
      if (!flight.is_open) continue;
      flight.is_open = false;
      --outstanding_count_;
      if (!flight.is_buffered) --posted_count_;
      has_lost_copies |= flight.is_buffered;
      if (flight.is_buffered || heir == nullptr) continue;  // lost: reported below
      push(*heir, {flight.put, flight.offset, flight.offset + flight.bytes});
      queued_bytes_ += flight.bytes;
      ++queued_puts_;
    }
    const bool is_lost = has_lost_copies || (is_needed && heir == nullptr);
    for (std::size_t i = rail.head; i < rail.pieces.size(); ++i) {
      if (heir != nullptr) {
        push(*heir, rail.pieces[i]);
      } else {
        queued_bytes_ -= rail.pieces[i].end - rail.pieces[i].offset;
        --queued_puts_;
      }
    }
    rail.pieces.clear();
    rail.head = 0;
    rail.queued_bytes = 0;
    rail.flight_bytes = 0;
    rail.flight_count = 0;
    rail.first_cookie = rail.next_cookie;
    return is_lost ? why : ok();
  }
  return ok();
}

void Link::abandon_posted() {
  for (int plane : planes_) {
    RailQueue& rail = rails_[plane];
    bool is_read = false;
    for (Flight& flight : rail.flights) is_read |= flight.is_open && !flight.is_buffered;
    if (!is_read) continue;
    rail.endpoint->abandon();
    for (Flight& flight : rail.flights) {
      if (!std::exchange(flight.is_open, false)) continue;
      --outstanding_count_;
      if (!flight.is_buffered) --posted_count_;
    }
    rail.flight_bytes = 0;
    rail.flight_count = 0;
    rail.first_cookie = rail.next_cookie;
  }
}

void Link::drop_queued() {
  for (int plane : planes_) {
    RailQueue& rail = rails_[plane];
    rail.pieces.clear();
    rail.head = 0;
    rail.queued_bytes = 0;
  }
  queued_bytes_ = 0;
  queued_puts_ = 0;
}

Link::RailState Link::rail_state(int plane) const {
  const RailQueue& rail = rails_[plane];
  return {plane, rail.rate.latency_us(), rail.rate.bytes_per_s(), rail.bytes_sent,
          rail.is_usable()};
}

}  // namespace polyrail
