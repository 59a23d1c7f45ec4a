// What this rank starts, and how it ends.
#include "src/exec/messages.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "src/base/assert.hpp"
#include "src/exec/message_numbers.hpp"

namespace polyrail {
namespace {

constexpr std::uint64_t kLeastCreditBytes = 4096;
constexpr std::byte kNothing{};  // the source of puts without bytes

}  // namespace

Messages::Messages(int rank, int rank_count, std::int64_t timeout_ms, std::vector<Link*>& links,
                   Host& host)
    : rank_(rank),
      timeout_ms_(timeout_ms),
      credit_bytes_(
          std::max(kLeastCreditBytes, kUnexpectedBytes / static_cast<std::uint64_t>(rank_count))),
      links_(links),
      host_(host),
      peers_(rank_count) {
  for (Peer& peer : peers_) peer.credit_bytes = credit_bytes_;
}

Status Messages::check(const Transfer& transfer) const {
  const int rank = transfer.peer;
  if (rank == rank_) return ok();
  const auto failed = [&](StatusCode code, const std::string& why) {
    return Status(code, "rank " + std::to_string(rank_) + ": " + transfer.text() + ": " + why);
  };
  if (transfer.window != nullptr && transfer.window->has_left(rank)) {
    return failed(StatusCode::kInvalidUsage, "that rank has ended its window");
  }
  if (transfer.sends()) {
    if (host_.can_reach(rank)) return ok();
  } else {
    const auto& here = peers_[rank].unmatched;
    const bool is_here = std::any_of(here.begin(), here.end(), [&](const Incoming* incoming) {
      return is_same_row(incoming->purpose, transfer.purpose) && incoming->tag == transfer.tag;
    });
    if (is_here || host_.can_hear(rank)) return ok();
  }
  return failed(StatusCode::kRemoteError, "that rank has left");
}

void Messages::start(std::shared_ptr<MessageWork> work, double now_us) {
  for (const Transfer& transfer : work->transfers) {
    if (Status status = check(transfer); !status.is_ok()) {
      host_.complete(*work, std::move(status));
      return;
    }
  }
  work->deadline_us = now_us + static_cast<double>(timeout_ms_) * 1e3;
  next_deadline_us_ = std::min(next_deadline_us_, work->deadline_us);
  work->index = active_.size();
  active_.push_back(work);
  // One more, so that it does not end before all have begun.
  work->open_count = work->transfers.size() + 1;
  for (Transfer& transfer : work->transfers) {
    transfer.work = work.get();
    begin(transfer);
  }
  for (const Transfer& transfer : work->transfers) {
    if (links_[transfer.peer] != nullptr) links_[transfer.peer]->pump(now_us);
  }
  if (--work->open_count == 0) end(*work, ok());
}

void Messages::begin(Transfer& transfer) {
  switch (transfer.kind) {
    case Transfer::Kind::kSend:
      if (transfer.peer == rank_) {
        send_to_self(transfer);
      } else {
        send(transfer);
      }
      return;
    case Transfer::Kind::kReceive: {
      Peer& peer = peers_[transfer.peer];
      peer.receives.push_back(&transfer);
      match_receive(peer, transfer);
      return;
    }
    case Transfer::Kind::kPut:
    case Transfer::Kind::kAverage:
      access(transfer);
      return;
  }
}

void Messages::send(Transfer& send) {
  Peer& peer = peers_[send.peer];
  const std::uint64_t bytes = send.bytes();
  const std::uint64_t cost = bytes + kOverheadBytes;
  SliceHeader header;
  header.signal = send.tag;
  header.call_count = send.count;
  if (bytes <= kEagerBytes && cost <= peer.credit_bytes) {
    peer.credit_bytes -= cost;
    send.is_granted = true;
    header.call_kind = pack(Kind::kEager, send.purpose, send.type);
    post(send.peer, header, send.source, bytes, Outgoing::of(send));
    return;
  }
  header.call_kind = pack(Kind::kRequest, send.purpose, send.type);
  send.number = post(send.peer, header, nullptr, 0, {});
  peer.requested.push_back(&send);
}

void Messages::send_to_self(Transfer& send) {
  Peer& self = peers_[rank_];
  const std::uint64_t bytes = send.bytes();
  auto made = std::make_unique<Incoming>();
  made->kind = Kind::kRequest;
  made->purpose = send.purpose;
  made->type = send.type;
  made->peer = rank_;
  made->number = self.next_number++;
  made->tag = send.tag;
  made->count = send.count;
  made->bytes = bytes;
  made->sender = &send;
  made->is_complete = true;
  send.is_granted = true;
  const std::uint64_t number = made->number;
  add(self, std::move(made));
  Incoming* waiting = find(self, number);
  if (waiting == nullptr || waiting->match != nullptr) return;
  // Not received yet: copied, as far as there is room.
  const std::uint64_t cost = bytes + kOverheadBytes;
  if (bytes > kEagerBytes || cost > self.credit_bytes) return;
  waiting->memory.reset(new (std::nothrow) std::byte[bytes + 1]);
  if (waiting->memory == nullptr) return;
  if (bytes != 0) std::memcpy(waiting->memory.get(), send.source, bytes);
  self.credit_bytes -= cost;
  waiting->kind = Kind::kEager;
  waiting->sender = nullptr;
  send.sent_bytes = bytes;
  send.is_sent = true;
  update(send);
}

void Messages::access(Transfer& access) {
  SliceHeader header;
  header.signal = access.tag;
  const bool is_put = access.kind == Transfer::Kind::kPut;
  header.call_kind = pack(is_put ? Kind::kPut : Kind::kAverage, access.window->id());
  header.call_count = is_put ? access.version : static_cast<std::uint64_t>(access.type);
  if (!is_put) peers_[access.peer].averages.push_back(&access);
  access.number = post(access.peer, header, access.source, access.bytes(), Outgoing::of(access));
}

std::uint64_t Messages::post(int peer, SliceHeader header, const std::byte* source,
                             std::uint64_t bytes, Outgoing outgoing,
                             std::optional<std::uint64_t> number) {
  const std::uint64_t used = number ? *number : peers_[peer].next_number++;
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(outgoing_.size());
    outgoing_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  outgoing.is_open = true;
  outgoing.left_bytes = bytes;
  outgoing_[index] = std::move(outgoing);
  header.operation = operation_of(used);
  Put put;
  put.header = header;
  put.source = bytes == 0 ? &kNothing : source;
  put.bytes = bytes;
  put.put = kPutFlag | index;
  Link& link = *links_[peer];
  link.post(put, link.best_plane(bytes));
  return used;
}

void Messages::post_signal(int peer, std::uint32_t call_kind, std::uint64_t count) {
  SliceHeader header;
  header.call_kind = call_kind;
  header.call_count = count;
  post(peer, header, nullptr, 0, {});
}

void Messages::on_put_progress(std::uint32_t put, std::uint64_t bytes) {
  const std::uint32_t index = put & ~kPutFlag;
  if (index >= outgoing_.size() || !outgoing_[index].is_open) return;  // ended by a failure
  Outgoing& outgoing = outgoing_[index];
  PR_ASSERT(bytes <= outgoing.left_bytes);
  outgoing.left_bytes -= bytes;
  if (outgoing.transfer != nullptr) outgoing.transfer->sent_bytes += bytes;
  if (outgoing.left_bytes != 0) return;
  const Outgoing over = std::exchange(outgoing, {});
  free_.push_back(index);
  if (over.reply != nullptr) over.window->release(over.reply);
  if (over.transfer == nullptr) return;
  over.transfer->is_sent = true;
  update(*over.transfer);
}

void Messages::update(Transfer& transfer) {
  if (transfer.is_done || (transfer.sends() && !transfer.is_sent) ||
      (transfer.receives() && !transfer.is_landed)) {
    return;
  }
  transfer.is_done = true;
  MessageWork& work = *transfer.work;
  if (--work.open_count == 0) end(work, transfer.refusal);
}

void Messages::end(MessageWork& work, Status outcome) {
  const std::shared_ptr<MessageWork> ended = std::move(active_[work.index]);
  if (work.index + 1 != active_.size()) {
    active_[work.index] = std::move(active_.back());
    active_[work.index]->index = work.index;
  }
  active_.pop_back();
  if (outcome.is_ok() && work.finish) work.finish();
  host_.complete(work, std::move(outcome));
}

bool Messages::waits_for(int peer) const {
  return std::any_of(active_.begin(), active_.end(), [peer](const auto& work) {
    return std::any_of(
        work->transfers.begin(), work->transfers.end(),
        [peer](const Transfer& transfer) { return transfer.peer == peer && !transfer.is_done; });
  });
}

std::string Messages::expired(double now_us) {
  if (now_us < next_deadline_us_) return {};
  next_deadline_us_ = 1e300;
  const MessageWork* late = nullptr;
  for (const auto& work : active_) {
    next_deadline_us_ = std::min(next_deadline_us_, work->deadline_us);
    if (work->deadline_us <= now_us) late = work.get();
  }
  if (late == nullptr) return {};
  std::string text = "rank " + std::to_string(rank_) + ": ";
  std::string missing;
  for (const Transfer& transfer : late->transfers) {
    if (transfer.is_done) continue;
    const std::string of = " of " + std::to_string(transfer.bytes()) + " bytes ";
    if (transfer.sends() && !transfer.is_sent) {
      missing += (missing.empty() ? "" : ", ") +
                 std::to_string(transfer.bytes() - transfer.sent_bytes) + of + "to rank " +
                 std::to_string(transfer.peer) +
                 (transfer.is_granted || transfer.window != nullptr ? "" : ", not received there");
    }
    if (transfer.receives() && !transfer.is_landed) {
      missing += (missing.empty() ? "" : ", ") +
                 std::to_string(transfer.bytes() - transfer.landed_bytes) + of + "from rank " +
                 std::to_string(transfer.peer);
    }
    text += transfer.text() + ", ";
    if (text.size() > 800) break;
  }
  return text + "not done within " + std::to_string(timeout_ms_) + " ms; missing: " + missing;
}

void Messages::end_all(const Status& why) {
  for (Peer& peer : peers_) {
    for (auto& [number, incoming] : peer.incoming) {
      if (incoming->open_count != 0) {
        host_.discard_incoming(incoming->peer, operation_of(number));
      }
    }
    peer.incoming.clear();
    peer.unmatched.clear();
    peer.receives.clear();
    peer.requested.clear();
    peer.averages.clear();
  }
  for (const Outgoing& outgoing : outgoing_) {
    if (outgoing.reply != nullptr) outgoing.window->release(outgoing.reply);
  }
  outgoing_.clear();
  free_.clear();
  while (!active_.empty()) end(*active_.back(), why);
}

void Messages::add_window(std::shared_ptr<WindowMemory> window) {
  windows_.push_back(std::move(window));
}

void Messages::remove_window(std::uint32_t id) {
  std::erase_if(windows_, [id](const auto& window) { return window->id() == id; });
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    if (rank != rank_ && host_.can_reach(rank)) post_signal(rank, pack(Kind::kWindowEnd, id), 0);
  }
}

}  // namespace polyrail
