#include "tests/support/recording_sink.hpp"

#include <algorithm>
#include <cstring>

namespace polyrail::testing {
namespace {

bool is_same(const SliceHeader& a, const SliceHeader& b) {
  return std::memcmp(&a, &b, sizeof(SliceHeader)) == 0;
}

}  // namespace

std::vector<RecordingSink::Event> RecordingSink::events(Kind kind) const {
  std::vector<Event> found;
  for (const auto& event : events_) {
    if (event.kind == kind) found.push_back(event);
  }
  return found;
}

void RecordingSink::forget() {
  events_.clear();
  std::fill(std::begin(counts_), std::end(counts_), 0);
  question_count_ = 0;
}

void RecordingSink::breach(Endpoint& endpoint, const char* what) {
  breaches_.push_back("peer " + std::to_string(endpoint.peer()) + ": " + what);
}

// What holds for every call but on_up and on_down.
void RecordingSink::check_call(Endpoint& endpoint) {
  if (!is_in_progress_) breach(endpoint, "called back outside progress()");
  if (std::ranges::count(lost_peers_, endpoint.peer()) > 0)
    breach(endpoint, "heard of after on_down");
}

void RecordingSink::record(Event event) {
  ++counts_[static_cast<std::size_t>(event.kind)];
  events_.push_back(event);
  react(event);
}

void RecordingSink::on_up(Endpoint& endpoint) {
  if (!is_in_progress_) breach(endpoint, "on_up outside progress()");
  if (endpoint.state() != EndpointState::kUp) breach(endpoint, "on_up, but its state is not kUp");
  record({.kind = Kind::kUp, .peer = endpoint.peer()});
}

void RecordingSink::on_down(Endpoint& endpoint, const Status& why) {
  if (!is_in_progress_) breach(endpoint, "on_down outside progress()");
  if (endpoint.state() != EndpointState::kDown) breach(endpoint, "on_down, but state is not kDown");
  if (why.is_ok() || why.message().empty()) breach(endpoint, "on_down without a reason");
  if (std::ranges::count(lost_peers_, endpoint.peer()) > 0) breach(endpoint, "on_down twice");
  lost_peers_.push_back(endpoint.peer());
  std::erase_if(arriving_, [&](const Arriving& slice) { return slice.peer == endpoint.peer(); });
  record({.kind = Kind::kDown, .peer = endpoint.peer(), .text = why.message()});
}

Landing RecordingSink::on_slice(Endpoint& from, const SliceHeader& header) {
  ++question_count_;
  check_call(from);
  const auto landing = decide(from, header);
  if (landing.how == Landing::How::kInto || landing.how == Landing::How::kStream) {
    arriving_.push_back({from.peer(), header, landing, 0});
  } else if (landing.how == Landing::How::kDiscard) {
    record({.kind = Kind::kArrived, .peer = from.peer(), .header = header, .how = landing.how});
  }
  return landing;
}

std::vector<RecordingSink::Arriving>::iterator RecordingSink::find(Endpoint& from,
                                                                   const SliceHeader& header,
                                                                   Landing::How how) {
  return std::ranges::find_if(arriving_, [&](const Arriving& slice) {
    return slice.peer == from.peer() && slice.landing.how == how && is_same(slice.header, header);
  });
}

void RecordingSink::on_landed(Endpoint& from, const SliceHeader& header) {
  check_call(from);
  const auto slice = find(from, header, Landing::How::kInto);
  if (slice == arriving_.end()) return breach(from, "on_landed for a slice not answered kInto");
  arriving_.erase(slice);
  record(
      {.kind = Kind::kArrived, .peer = from.peer(), .header = header, .how = Landing::How::kInto});
}

void RecordingSink::on_bytes(Endpoint& from, const SliceHeader& header, std::uint32_t offset_bytes,
                             std::span<const std::byte> bytes) {
  check_call(from);
  const auto slice = find(from, header, Landing::How::kStream);
  if (slice == arriving_.end()) return breach(from, "on_bytes for a slice not answered kStream");
  if (offset_bytes != slice->next_bytes) breach(from, "on_bytes out of order");
  if (offset_bytes + bytes.size() > header.bytes) return breach(from, "on_bytes beyond the slice");
  const bool is_last = offset_bytes + bytes.size() == header.bytes;
  if (!is_last && (bytes.empty() || bytes.size() % 64 != 0)) {
    breach(from, "on_bytes with a part that is no multiple of 64 bytes");
  }
  std::copy(bytes.begin(), bytes.end(), slice->landing.target + offset_bytes);
  slice->next_bytes += static_cast<std::uint32_t>(bytes.size());
  if (!is_last) return;
  arriving_.erase(slice);
  record({.kind = Kind::kArrived,
          .peer = from.peer(),
          .header = header,
          .how = Landing::How::kStream});
}

void RecordingSink::on_acknowledged(Endpoint& to, const Acknowledgement& done) {
  check_call(to);
  record({.kind = Kind::kAcknowledged,
          .peer = to.peer(),
          .cookie = done.cookie,
          .was_stalled = done.was_stalled,
          .landed_us = done.landed_us,
          .ahead_bytes = done.ahead_bytes});
}

void RecordingSink::on_control(Endpoint& from, std::span<const std::byte> message) {
  check_call(from);
  record({.kind = Kind::kControl,
          .peer = from.peer(),
          .text = std::string(reinterpret_cast<const char*>(message.data()), message.size())});
}

}  // namespace polyrail::testing
