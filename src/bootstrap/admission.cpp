#include "src/bootstrap/admission.hpp"

#include <poll.h>

#include <algorithm>
#include <optional>

#include "src/bootstrap/strangers.hpp"
#include "src/bootstrap/wording.hpp"

namespace polyrail::bootstrap {
namespace {

constexpr std::size_t kFewestStrangers = 16;
constexpr std::size_t kMostStrangers = 1024;
constexpr int kAcceptedAtOnce = 64;  // then the others get their turn
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{20};
constexpr std::chrono::seconds kPatienceForLate{2};

class Admission {
 public:
  Admission(std::vector<BoundSocket> sockets, const JoinSetup& setup, std::size_t most_strangers)
      : setup_(setup),
        deadline_(setup.timeout_ms),
        sockets_(std::move(sockets)),
        strangers_(setup, most_strangers),
        members_(setup.self.rank_count),
        has_come_(setup.self.rank_count) {
    has_come_[0] = true;
  }

  Result<std::vector<Member>> run() {
    while (failure_.is_ok() && !have_all_come()) {
      wait(deadline_.verdict());
      if (!have_all_come() && Clock::now() >= deadline_.verdict()) set_failure(missing());
    }
    if (!failure_.is_ok()) return fail();
    const auto welcome =
        std::make_shared<const std::string>(encode({FrameKind::kWelcome, 0, "", ""}));
    std::vector<Member> result;
    for (int rank = 1; rank < setup_.self.rank_count; ++rank) {
      // If one is lost just now, the first all_gather will say so.
      members_[rank]->wire.queue(welcome);
      (void)members_[rank]->wire.send();
      result.push_back(std::move(*members_[rank]));
    }
    return result;
  }

 private:
  void wait(Clock::time_point until) {
    const Clock::time_point now = Clock::now();
    until = std::min(until, strangers_.drop_late(now));
    std::vector<pollfd> polled;
    strangers_.append_polled(polled);
    const std::size_t members_at = polled.size();
    std::vector<int> ranks;
    for (int rank = 1; rank < setup_.self.rank_count; ++rank) {
      if (!members_[rank].has_value()) continue;
      polled.push_back({members_[rank]->wire.descriptor(), members_[rank]->wire.events(), 0});
      ranks.push_back(rank);
    }
    const std::size_t sockets_at = polled.size();
    const bool may_accept = now >= accept_again_;
    for (const BoundSocket& socket : sockets_) {
      polled.push_back({socket.descriptor.get(), static_cast<short>(may_accept ? POLLIN : 0), 0});
    }
    if (!may_accept) until = std::min(until, accept_again_);

    poll_until(polled, until);
    // Members before strangers: who has just left is not taken for a rank given twice.
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (polled[members_at + i].revents != 0) watch(*members_[ranks[i]]);
    }
    for (Proven& proven : strangers_.step(polled.data(), deadline_.remaining_ms())) {
      admit(std::move(proven));
    }
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      if (polled[sockets_at + i].revents != 0) accept_from(sockets_[i]);
    }
  }

  void accept_from(const BoundSocket& socket) {
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      Accepted accepted = accept_one(socket.descriptor);
      if (accepted.outcome == Accept::kNobody) return;
      if (accepted.outcome == Accept::kNoDescriptor) {
        if (strangers_.count() == 0) accept_again_ = Clock::now() + kPauseWithoutDescriptors;
        strangers_.evict_one();
        return;
      }
      strangers_.add(std::move(accepted.descriptor), accepted.peer);
    }
  }

  void admit(Proven proven) {
    const Claim& claim = proven.claim;
    if (check_rank(claim.rank, setup_.self.rank_count).is_ok()) has_come_[claim.rank] = true;
    setup_.logger->debug("bootstrap: {} is there", rank_and_place(claim));
    Member member{Wire(std::move(proven.descriptor), setup_.self.rank_count), claim};
    if (Status refusal = check(claim); !refusal.is_ok()) {
      set_failure(refusal);
      refused_.push_back(std::move(member));
      return;
    }
    member.wire.queue(encode({FrameKind::kAccepted, 0, "", ""}));
    const Status sent = member.wire.send();
    if (!sent.is_ok()) set_failure(lost(claim, sent));
    deadline_.include(claim.remaining_ms);
    members_[claim.rank] = std::move(member);
  }

  Status check(const Claim& claim) const {
    const Claim& self = setup_.self;
    if (Status status = check_versions(self, claim); !status.is_ok()) return status;
    if (claim.rank_count != self.rank_count) {
      return {StatusCode::kInvalidUsage,
              rank_and_place(self) + " was started for " + std::to_string(self.rank_count) +
                  " ranks, " + rank_and_place(claim) + " for " + std::to_string(claim.rank_count)};
    }
    if (Status status = check_rank(claim.rank, self.rank_count); !status.is_ok()) {
      return {StatusCode::kInvalidUsage, status.message() + " (" + place(claim) + ")"};
    }
    const Claim* first = claim.rank == 0                    ? &self
                         : members_[claim.rank].has_value() ? &members_[claim.rank]->claim
                                                            : nullptr;
    if (first == nullptr) return ok();
    return {StatusCode::kInvalidUsage, "rank " + std::to_string(claim.rank) +
                                           " was given twice: to " + place(*first) + " and to " +
                                           place(claim)};
  }

  // A member has nothing to say here, except that it gives up.
  void watch(Member& member) {
    const Status sent = member.wire.send();
    const Status received = member.wire.receive();
    if (member.wire.has_frame()) {
      const Frame frame = member.wire.take();
      const Status cause = frame.kind == FrameKind::kFailure
                               ? decode_failure(frame.payload)
                               : Status(StatusCode::kInternalError, "a message out of order");
      set_failure({cause.code(), rank_and_place(member.claim) + ": " + cause.message()});
    } else if (!received.is_ok()) {
      set_failure(lost(member.claim, received));
    } else if (!sent.is_ok()) {
      set_failure(lost(member.claim, sent));
    }
  }

  static Status lost(const Claim& claim, const Status& cause) {
    return {StatusCode::kRemoteError,
            rank_and_place(claim) + " was lost during start-up: " + cause.message()};
  }

  Status missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < setup_.self.rank_count; ++rank) {
      if (!members_[rank].has_value()) ranks.push_back(rank);
    }
    std::string text = rank_list(ranks) + " did not come to rank 0 (" + place(setup_.self) +
                       ") within " + std::to_string(setup_.timeout_ms) +
                       " ms (option start_timeout_ms); it listened at";
    const char* separator = " ";
    for (const BoundSocket& socket : sockets_) {
      text += separator + to_text(socket.address);
      separator = ", ";
    }
    if (const std::string strangers = strangers_.summary(); !strangers.empty()) {
      text += "; " + strangers;
    }
    return {StatusCode::kTimeout, text};
  }

  bool have_all_come() const {
    return std::find(has_come_.begin(), has_come_.end(), false) == has_come_.end();
  }

  void set_failure(const Status& status) {
    if (failure_.is_ok()) failure_ = status;
  }

  // Tells everybody, and for a while those who come now. The bytes stay in the sockets' buffers and
  // arrive even though we close.
  Status fail() {
    const auto verdict = std::make_shared<const std::string>(encode_failure(failure_));
    const Clock::time_point end = std::min(deadline_.verdict(), Clock::now() + kPatienceForLate);
    while (true) {
      for (auto& member : members_) {
        if (member.has_value()) refused_.push_back(std::move(*member));
        member.reset();
      }
      for (Member& member : refused_) {
        member.wire.queue(verdict);
        (void)member.wire.send();
      }
      refused_.clear();
      if (have_all_come() || Clock::now() >= end) return failure_;
      wait(end);
    }
  }

  const JoinSetup& setup_;
  PhaseDeadline deadline_;
  std::vector<BoundSocket> sockets_;
  Strangers strangers_;
  std::vector<std::optional<Member>> members_;  // by rank; that of rank 0 stays empty
  std::vector<Member> refused_;                 // who still has to be told that start-up has failed
  std::vector<bool> has_come_;                  // by rank: those that were accepted or told why not
  Clock::time_point accept_again_{};
  Status failure_;
};

}  // namespace

Result<std::vector<Member>> admit_ranks(std::vector<BoundSocket> sockets, const JoinSetup& setup) {
  const std::size_t member_count = setup.self.rank_count - 1;
  const std::size_t wanted =
      std::min(kFewestStrangers + 4 * setup.self.rank_count + 48, kMostStrangers);
  const std::size_t room = reserve_descriptors(member_count + wanted);
  if (room < member_count + kFewestStrangers) {
    return Status(StatusCode::kSystemError, "rank 0 needs " +
                                                std::to_string(member_count + kFewestStrangers) +
                                                " more file descriptors, " + std::to_string(room) +
                                                " are free; raise the hard limit (ulimit -Hn)");
  }
  for (const BoundSocket& socket : sockets) {
    if (Status status = start_listening(socket); !status.is_ok()) {
      const bool is_taken = status.code() == StatusCode::kInvalidUsage;
      return Status(status.code(),
                    (is_taken ? "rank 0 seems to be there already: " : "") + status.message());
    }
  }
  return Admission(std::move(sockets), setup, room - member_count).run();
}

}  // namespace polyrail::bootstrap
