// join_as_member: the ranks other than 0. They talk to the root only.
#include <poll.h>

#include "src/bootstrap/bytes.hpp"
#include "src/bootstrap/dial.hpp"
#include "src/bootstrap/wording.hpp"

namespace polyrail::bootstrap {
namespace {

class MemberBootstrap final : public Bootstrap {
 public:
  MemberBootstrap(Dialed dialed, const JoinSetup& setup)
      : setup_(setup), root_(std::move(dialed)) {}

  int rank() const override { return setup_.self.rank; }
  int rank_count() const override { return setup_.self.rank_count; }
  const Key& key() const override { return setup_.key; }

  // The last part of joining: the root knows us, others may still be missing.
  Status wait_for_welcome(const PhaseDeadline& deadline) {
    const Result<Frame> frame = await(FrameKind::kWelcome, deadline, "waiting for the other ranks");
    return frame.status();
  }

  Result<std::vector<std::string>> all_gather(std::string_view phase,
                                              std::string_view message) override {
    if (!failure_.is_ok()) return failure_;
    if (Status status = check_message(rank(), phase, message.size()); !status.is_ok()) {
      return fail(status);
    }
    const PhaseDeadline deadline(setup_.timeout_ms);
    root_.wire.queue(encode(
        {FrameKind::kMessage, deadline.remaining_ms(), std::string(phase), std::string(message)}));
    const Result<Frame> frame =
        await(FrameKind::kGathered, deadline, "phase '" + std::string(phase) + "'");
    if (!frame.is_ok()) return frame.status();
    if (frame.value().phase != phase) {
      return fail(different_phases(rank_and_place(setup_.self), phase, rank_and_place(root_.root),
                                   printable(frame.value().phase)));
    }
    Result<std::vector<std::string>> parts = decode_gathered(frame.value().payload, rank_count());
    if (!parts.is_ok()) return fail(parts.status());
    return parts;
  }

 private:
  // Sends what is queued and takes the next frame, which is of this kind or ends everything.
  Result<Frame> await(FrameKind kind, const PhaseDeadline& deadline, const std::string& occasion) {
    const std::string who = rank_and_place(root_.root);
    while (true) {
      const Status sent = root_.wire.send();
      const Status received = root_.wire.receive();
      if (root_.wire.has_frame()) {
        Frame frame = root_.wire.take();
        if (frame.kind == kind) return frame;
        if (frame.kind == FrameKind::kFailure) return failure_ = decode_failure(frame.payload);
        return fail(
            {StatusCode::kInternalError, occasion + ": " + who + " sent a message out of order"});
      }
      if (!received.is_ok() || !sent.is_ok()) {
        const std::string& cause = (received.is_ok() ? sent : received).message();
        return fail({StatusCode::kRemoteError, occasion + ": " + who + " was lost: " + cause});
      }
      if (Clock::now() >= deadline.patient()) {
        return fail({StatusCode::kTimeout,
                     occasion + ": " + who + " did not answer within " +
                         std::to_string(setup_.timeout_ms) +
                         " ms (option start_timeout_ms); it or another rank has not come so far"});
      }
      std::vector<pollfd> polled = {{root_.wire.descriptor(), root_.wire.events(), 0}};
      poll_until(polled, deadline.patient());
    }
  }

  // The root hears of it and tells the others.
  Status fail(const Status& status) {
    failure_ = status;
    root_.wire.queue(encode_failure(status));
    (void)root_.wire.send();
    return status;
  }

  const JoinSetup setup_;
  Dialed root_;
  Status failure_;
};

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_as_member(const std::vector<Address>& addresses,
                                                  const JoinSetup& setup) {
  const PhaseDeadline deadline(setup.timeout_ms);
  Result<Dialed> dialed = dial(addresses, setup, deadline);
  if (!dialed.is_ok()) return dialed.status();
  auto member = std::make_unique<MemberBootstrap>(std::move(dialed).value(), setup);
  if (Status status = member->wait_for_welcome(deadline); !status.is_ok()) return status;
  return std::unique_ptr<Bootstrap>(std::move(member));
}

}  // namespace polyrail::bootstrap
