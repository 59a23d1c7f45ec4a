#include <polyrail/group.hpp>

#include <sched.h>

#include <algorithm>
#include <map>

#include <polyrail/fuse.hpp>

#include "src/exec/engine.hpp"
#include "src/exec/operation.hpp"

namespace polyrail {
namespace {

// A call whose counts are its own.
struct OwnedCall {
  explicit OwnedCall(const Call& other)
      : call(other),
        counts(other.counts.begin(), other.counts.end()),
        receive_counts(other.receive_counts.begin(), other.receive_counts.end()) {
    call.counts = counts;
    call.receive_counts = receive_counts;
  }
  OwnedCall(const OwnedCall&) = delete;
  OwnedCall& operator=(const OwnedCall&) = delete;

  Call call;
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> receive_counts;
};

std::uint64_t bytes_of(const std::vector<Call>& calls) {
  std::uint64_t bytes = 0;
  for (const Call& call : calls) bytes += call.count * size_bytes(call.type);
  return bytes;
}

// Ranks that only move while somebody waits for them may need each other: all are moved in turn.
void wait_for_all(std::vector<Work>& works) {
  const auto is_moved_here = [](const Work& work) {
    return work.state() != nullptr && work.state()->engine->is_moved_by_callers();
  };
  if (std::count_if(works.begin(), works.end(), is_moved_here) > 1) {
    for (;;) {
      bool are_done = true;
      for (Work& work : works) are_done &= work.is_done();
      if (are_done) break;
      sched_yield();
    }
  }
  for (Work& work : works) (void)work.wait();
}

}  // namespace

Group::~Group() {
  (void)end();
}

void Group::refuse(const Status& failure) {
  if (refusal_.is_ok()) refusal_ = failure;
}

Status Group::add(Communicator& communicator, const Call& call, Stream* stream) {
  if (Status status = communicator.check(call); !status.is_ok()) {
    refuse(status);
    return status;
  }
  if (is_fusible(call)) {
    entries_.push_back({&communicator, call, std::nullopt, nullptr, true, stream});
    return ok();
  }
  const auto owned = std::make_shared<OwnedCall>(call);  // shared with copies of the closure
  auto starter = [&communicator, owned](std::span<const Work> after) {
    return communicator.start(owned->call, after);
  };
  entries_.push_back({&communicator, std::nullopt, std::nullopt, std::move(starter), true, stream});
  return ok();
}

Status Group::add(Communicator& communicator, const Message& message, Stream* stream) {
  if (Status status = communicator.check(message); !status.is_ok()) {
    refuse(status);
    return status;
  }
  entries_.push_back({&communicator, std::nullopt, message, nullptr, false, stream});
  return ok();
}

Status Group::add(Communicator& communicator, Stream::Starter starter, Stream* stream) {
  entries_.push_back(
      {&communicator, std::nullopt, std::nullopt, std::move(starter), false, stream});
  return ok();
}

// Each batch stands where its first call stood. Only the last collective of a communicator takes
// more, so that they stay in order.
std::vector<Group::Batch> Group::make_batches() const {
  std::vector<Batch> batches;
  std::map<const Communicator*, std::size_t> last;  // batch by communicator
  for (const Entry& entry : entries_) {
    const auto found = last.find(entry.communicator);
    if (found != last.end() && entry.call) {
      Batch& batch = batches[found->second];
      const bool fits = !batch.calls.empty() && batch.stream == entry.stream &&
                        fits_together(batch.calls.front(), *entry.call) &&
                        bytes_of(batch.calls) + bytes_of({*entry.call}) <= kMostFusedBytes;
      if (fits) {
        batch.calls.push_back(*entry.call);
        continue;
      }
    }
    if (entry.message) {
      const auto same = std::find_if(batches.begin(), batches.end(), [&](const Batch& batch) {
        return !batch.messages.empty() && batch.communicator == entry.communicator &&
               batch.stream == entry.stream;
      });
      if (same != batches.end()) {
        same->messages.push_back(*entry.message);
        continue;
      }
    }
    if (entry.is_collective) last[entry.communicator] = batches.size();
    Batch& batch = batches.emplace_back();
    batch.communicator = entry.communicator;
    if (entry.call) batch.calls.push_back(*entry.call);
    if (entry.message) batch.messages.push_back(*entry.message);
    batch.starter = entry.starter;
    batch.stream = entry.stream;
  }
  return batches;
}

Status Group::end() {
  const std::vector<Batch> batches = make_batches();
  entries_.clear();
  Status first = std::move(refusal_);
  refusal_ = ok();
  if (!first.is_ok()) return first;
  std::vector<Work> works;
  for (const Batch& batch : batches) {
    const auto start = [&](std::span<const Work> after) {
      if (batch.starter) return batch.starter(after);
      if (!batch.messages.empty()) return batch.communicator->start(batch.messages, after);
      if (batch.calls.size() > 1) return batch.communicator->start_fused(batch.calls, after);
      return batch.communicator->start(batch.calls.front(), after);
    };
    if (batch.stream != nullptr) {
      if (Status status = batch.stream->start(start); first.is_ok()) first = std::move(status);
    } else if (batches.size() == 1 && batch.calls.size() == 1) {
      return batch.communicator->run(batch.calls.front());  // needs no thread of the library
    } else if (batches.size() == 1 && !batch.messages.empty()) {
      return batch.communicator->run(batch.messages);
    } else {
      works.push_back(start({}));
    }
  }
  wait_for_all(works);
  for (Work& work : works) {
    if (Status status = work.wait(); first.is_ok()) first = std::move(status);
  }
  return first;
}

}  // namespace polyrail
