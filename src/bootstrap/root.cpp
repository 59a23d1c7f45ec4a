// join_as_root: rank 0, the middle of the star. It collects the parts and hands out the whole.
#include <poll.h>

#include "src/bootstrap/admission.hpp"
#include "src/bootstrap/bytes.hpp"
#include "src/bootstrap/wording.hpp"

namespace polyrail::bootstrap {
namespace {

class RootBootstrap final : public Bootstrap {
 public:
  RootBootstrap(std::vector<Member> members, const JoinSetup& setup)
      : setup_(setup), members_(std::move(members)) {}

  int rank() const override { return 0; }
  int rank_count() const override { return setup_.self.rank_count; }
  const Key& key() const override { return setup_.key; }

  Result<std::vector<std::string>> all_gather(std::string_view phase,
                                              std::string_view message) override {
    if (!failure_.is_ok()) return failure_;
    if (Status status = check_message(0, phase, message.size()); !status.is_ok()) {
      return fail(status);
    }
    phase_ = phase;
    PhaseDeadline deadline(setup_.timeout_ms);
    std::vector<std::string> parts(rank_count());
    parts[0] = message;
    if (Status status = collect(parts, deadline); !status.is_ok()) return fail(status);
    if (Status status = hand_out(parts, deadline); !status.is_ok()) return fail(status);
    return parts;
  }

 private:
  // Listens to all members all the time, also to those whose part is there: who is lost is noticed
  // at once.
  Status collect(std::vector<std::string>& parts, PhaseDeadline& deadline) {
    std::vector<bool> has_come(members_.size());
    for (std::size_t missing_count = members_.size(); missing_count > 0;) {
      if (Clock::now() >= deadline.verdict()) {
        return missing_at_deadline(phase_, name_missing(has_come), setup_.timeout_ms);
      }
      poll_members(POLLIN, deadline.verdict());
      for (std::size_t i = 0; i < members_.size(); ++i) {
        if (polled_[i].revents == 0) continue;
        Member& member = members_[i];
        if (Status status = receive(member); !status.is_ok()) return status;
        while (member.wire.has_frame()) {
          Frame frame = member.wire.take();
          if (Status status = check(member, frame, has_come[i]); !status.is_ok()) return status;
          deadline.include(frame.remaining_ms);
          parts[member.claim.rank] = std::move(frame.payload);
          has_come[i] = true;
          --missing_count;
        }
      }
    }
    return ok();
  }

  Status hand_out(const std::vector<std::string>& parts, const PhaseDeadline& deadline) {
    const auto whole = std::make_shared<const std::string>(
        encode({FrameKind::kGathered, 0, phase_, encode_gathered(parts)}));
    for (Member& member : members_) member.wire.queue(whole);
    Status first_failure;
    while (true) {
      std::vector<int> behind;
      for (Member& member : members_) {
        // One that is lost does not keep the others from getting theirs.
        if (Status status = member.wire.send(); !status.is_ok()) {
          if (first_failure.is_ok()) first_failure = lost(member, status);
        } else if (member.wire.has_output()) {
          behind.push_back(member.claim.rank);
        }
      }
      if (behind.empty()) return first_failure;
      if (Clock::now() >= deadline.patient()) {
        return {StatusCode::kTimeout, "phase '" + phase_ + "': " + rank_list(behind) +
                                          " did not take the result within " +
                                          std::to_string(setup_.timeout_ms) +
                                          " ms (option start_timeout_ms)"};
      }
      poll_members(POLLOUT, deadline.patient());
    }
  }

  // For POLLOUT only those that have something to get; the others may already say the next thing.
  void poll_members(short events, Clock::time_point until) {
    polled_.clear();
    for (const Member& member : members_) {
      const bool is_of_interest = events == POLLIN || member.wire.has_output();
      polled_.push_back({is_of_interest ? member.wire.descriptor() : -1, events, 0});
    }
    poll_until(polled_, until);
  }

  // Frames that came before the end of a connection still count.
  Status receive(Member& member) const {
    const Status received = member.wire.receive();
    return received.is_ok() || member.wire.has_frame() ? ok() : lost(member, received);
  }

  // With their places, as long as that can be read.
  std::string name_missing(const std::vector<bool>& has_come) const {
    constexpr std::size_t kMostPlaces = 4;
    std::vector<int> ranks;
    std::string places;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (has_come[i]) continue;
      ranks.push_back(members_[i].claim.rank);
      places += (places.empty() ? "" : ", ") + rank_and_place(members_[i].claim);
    }
    return ranks.size() <= kMostPlaces ? places : rank_list(ranks);
  }

  Status check(const Member& member, const Frame& frame, bool has_come) const {
    const std::string who = rank_and_place(member.claim);
    if (frame.kind == FrameKind::kFailure) {
      const Status cause = decode_failure(frame.payload);
      return {cause.code(), who + ": " + cause.message()};
    }
    if (frame.kind != FrameKind::kMessage || has_come) {
      return {StatusCode::kInternalError, who + " sent a message out of order"};
    }
    if (frame.phase == phase_) return ok();
    return different_phases(rank_and_place(setup_.self), phase_, who, printable(frame.phase));
  }

  Status lost(const Member& member, const Status& cause) const {
    return {StatusCode::kRemoteError, "phase '" + phase_ + "': " + rank_and_place(member.claim) +
                                          " was lost: " + cause.message()};
  }

  // All ranks get the same verdict; after it nothing more is gathered.
  Status fail(const Status& status) {
    failure_ = status;
    const auto verdict = std::make_shared<const std::string>(encode_failure(status));
    for (Member& member : members_) {
      member.wire.queue(verdict);
      (void)member.wire.send();  // to those that can be reached
    }
    return status;
  }

  const JoinSetup setup_;
  std::vector<Member> members_;  // by rank, rank 1 first
  std::vector<pollfd> polled_;   // in the order of members_
  std::string phase_;
  Status failure_;
};

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_as_root(std::vector<BoundSocket> sockets,
                                                const JoinSetup& setup) {
  std::vector<Member> members;
  if (setup.self.rank_count > 1) {
    Result<std::vector<Member>> admitted = admit_ranks(std::move(sockets), setup);
    if (!admitted.is_ok()) return admitted.status();
    members = std::move(admitted).value();
  }
  return std::unique_ptr<Bootstrap>(std::make_unique<RootBootstrap>(std::move(members), setup));
}

}  // namespace polyrail::bootstrap
