#include "src/bootstrap/dial.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <optional>

#include "src/base/interfaces.hpp"
#include "src/bootstrap/bytes.hpp"

namespace polyrail::bootstrap {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{2};
constexpr milliseconds kLongestPause{100};
constexpr milliseconds kPauseForOthers{500};  // where somebody else listens
// A request that the network swallowed is repeated sooner than the system would.
constexpr std::chrono::seconds kConnectPatience{2};

enum class Stage : std::uint8_t {
  kPausing,     // until `at`
  kConnecting,  // since `at`
  kAsking,      // hello is sent, the challenge is coming
  kReplying,    // reply is sent, acceptance or failure is coming
};

// One address on the way to the root.
struct Candidate {
  Address address;
  Stage stage = Stage::kPausing;
  Clock::time_point at{};
  milliseconds pause = kFirstPause;
  FileDescriptor descriptor;
  std::string hello;
  std::string challenge;
  std::optional<Wire> wire;  // from kReplying on; then it owns the descriptor
  Claim root;
  std::string last_error = "not tried";
  int attempt_count = 0;
};

// A link-local address names the root's interface. Which of our own leads there is found by trying.
std::vector<Address> reachable_forms(const Address& address) {
  if (address.ip.scope.empty()) return {address};
  std::vector<Address> forms;
  if (const auto all = interface_addresses(); all.is_ok()) {
    for (const InterfaceAddress& own : all.value()) {
      if (!own.ip.is_ipv6 || !own.ip.is_link_local() || !own.is_running) continue;
      Address form = address;
      form.ip.scope = own.interface;
      if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
    }
  }
  return forms.empty() ? std::vector<Address>{address} : forms;
}

class Dialer {
 public:
  Dialer(const std::vector<Address>& addresses, const JoinSetup& setup,
         const PhaseDeadline& deadline)
      : setup_(setup), deadline_(deadline) {
    for (const Address& address : addresses) {
      for (const Address& form : reachable_forms(address)) {
        candidates_.emplace_back();
        candidates_.back().address = form;
      }
    }
  }

  Result<Dialed> run() {
    while (!outcome_.has_value()) {
      const Clock::time_point now = Clock::now();
      const bool is_near = replying_ != nullptr;
      if (now >= (is_near ? deadline_.patient() : deadline_.own())) return out_of_time();
      for (Candidate& candidate : candidates_) begin_if_due(candidate, now);
      wait(now);
    }
    return std::move(*outcome_);
  }

 private:
  void begin_if_due(Candidate& candidate, Clock::time_point now) {
    if (candidate.stage == Stage::kConnecting && now - candidate.at >= kConnectPatience) {
      give_up(candidate, "no answer to the request to connect");
      candidate.at = now;
    }
    if (candidate.stage != Stage::kPausing || now < candidate.at || replying_ != nullptr) return;
    ++candidate.attempt_count;
    Result<FileDescriptor> descriptor = start_connecting(candidate.address);
    if (!descriptor.is_ok()) {
      give_up(candidate, descriptor.status().message());
      return;
    }
    candidate.descriptor = std::move(descriptor).value();
    candidate.stage = Stage::kConnecting;
    candidate.at = now;
  }

  void wait(Clock::time_point now) {
    Clock::time_point until = replying_ != nullptr ? deadline_.patient() : deadline_.own();
    std::vector<pollfd> polled;
    std::vector<Candidate*> waiting;
    for (Candidate& candidate : candidates_) {
      if (candidate.stage == Stage::kPausing) {
        if (replying_ == nullptr) until = std::min(until, std::max(candidate.at, now));
        continue;
      }
      if (candidate.stage == Stage::kConnecting) {
        until = std::min(until, candidate.at + kConnectPatience);
      }
      const short events = candidate.stage == Stage::kConnecting ? POLLOUT
                           : candidate.stage == Stage::kReplying ? candidate.wire->events()
                                                                 : POLLIN;
      const int number =
          candidate.wire.has_value() ? candidate.wire->descriptor() : candidate.descriptor.get();
      polled.push_back({number, events, 0});
      waiting.push_back(&candidate);
    }
    poll_until(polled, until);
    for (std::size_t i = 0; i < polled.size() && !outcome_.has_value(); ++i) {
      // A candidate may have been put aside in favour of one before it.
      if (polled[i].revents != 0 && waiting[i]->stage != Stage::kPausing) step(*waiting[i]);
    }
  }

  void step(Candidate& candidate) {
    switch (candidate.stage) {
      case Stage::kPausing:
        return;
      case Stage::kConnecting:
        return say_hello(candidate);
      case Stage::kAsking:
        return read_challenge(candidate);
      case Stage::kReplying:
        return read_answer(candidate);
    }
  }

  void say_hello(Candidate& candidate) {
    if (Status status = connect_result(candidate.descriptor); !status.is_ok()) {
      return give_up(candidate, status.message());
    }
    const Result<Nonce> nonce = random_nonce();
    if (!nonce.is_ok()) {
      outcome_ = nonce.status();
      return;
    }
    candidate.hello = make_hello(nonce.value());
    candidate.challenge.clear();
    // A fresh connection takes so few bytes at once.
    if (send_some(candidate.descriptor, candidate.hello).bytes != candidate.hello.size()) {
      return give_up(candidate, "the connection broke at once");
    }
    candidate.stage = Stage::kAsking;
    candidate.last_error = "connected, but nobody answered";
  }

  void read_challenge(Candidate& candidate) {
    std::array<char, kChallengeBytes> bytes;
    const Moved moved = receive_some(candidate.descriptor, bytes.data(),
                                     kChallengeBytes - candidate.challenge.size());
    if (moved.error != 0) return give_up(candidate, system_text(moved.error));
    if (moved.has_ended) return give_up(candidate, "it closed the connection");
    candidate.challenge.append(bytes.data(), moved.bytes);
    if (!may_be_challenge(candidate.challenge)) {
      return pass_over(candidate, "something else than a Polyrail rank 0 answered");
    }
    if (candidate.challenge.size() < kChallengeBytes) return;
    const std::optional<Claim> root =
        check_challenge(setup_.key, candidate.hello, candidate.challenge);
    if (!root.has_value()) {
      return pass_over(candidate, "a rank 0 of another job answered (it does not know the key)");
    }
    reply(candidate, *root);
  }

  void reply(Candidate& candidate, const Claim& root) {
    for (Candidate& other : candidates_) {
      if (&other != &candidate) put_aside(other);
    }
    replying_ = &candidate;
    candidate.root = root;
    candidate.stage = Stage::kReplying;
    candidate.last_error = rank_and_place(root) + " answered, but did not accept";
    candidate.wire.emplace(std::move(candidate.descriptor), setup_.self.rank_count);
    Claim self = setup_.self;
    self.remaining_ms = deadline_.remaining_ms();
    candidate.wire->queue(make_reply(setup_.key, candidate.hello, candidate.challenge, self));
    if (Status status = candidate.wire->send(); !status.is_ok()) {
      return give_up(candidate, status.message());
    }
    // After another start-up protocol's answer nothing else could be read. The root knows by now.
    if (root.protocol != self.protocol) outcome_ = check_versions(self, root);
  }

  void read_answer(Candidate& candidate) {
    const Status sent = candidate.wire->send();
    const Status received = candidate.wire->receive();
    if (candidate.wire->has_frame()) {
      const Frame frame = candidate.wire->take();
      if (frame.kind == FrameKind::kAccepted) {
        outcome_ = Dialed{std::move(*candidate.wire), candidate.root};
      } else if (frame.kind == FrameKind::kFailure) {
        outcome_ = decode_failure(frame.payload);
      } else {
        outcome_ = Status(StatusCode::kInternalError,
                          rank_and_place(candidate.root) + " sent a message out of order");
      }
      return;
    }
    // It was not yet one of the ranks, so that trying again does no harm.
    if (!received.is_ok()) return give_up(candidate, received.message());
    if (!sent.is_ok()) return give_up(candidate, sent.message());
  }

  void put_aside(Candidate& candidate) {
    if (replying_ == &candidate) replying_ = nullptr;
    candidate.descriptor = FileDescriptor();
    candidate.wire.reset();
    candidate.stage = Stage::kPausing;
    candidate.at = Clock::now() + candidate.pause;
  }

  void give_up(Candidate& candidate, const std::string& why) {
    put_aside(candidate);
    candidate.pause = std::min(candidate.pause * 2, kLongestPause);
    if (candidate.attempt_count == 1 || candidate.last_error != why) {
      setup_.logger->debug("bootstrap: {}: {}", to_text(candidate.address), why);
    }
    candidate.last_error = why;
  }

  // Asks somebody else again less often than it asks where nobody is yet.
  void pass_over(Candidate& candidate, const std::string& why) {
    give_up(candidate, why);
    candidate.at = Clock::now() + kPauseForOthers;
  }

  Status out_of_time() const {
    std::string text = "rank " + std::to_string(setup_.self.rank) + " (" + place(setup_.self) +
                       ") found no way to rank 0 within " + std::to_string(setup_.timeout_ms) +
                       " ms (option start_timeout_ms); tried";
    for (std::size_t i = 0; i < candidates_.size();) {
      // One line for neighbouring ports of one address that ended in the same way.
      const Candidate& first = candidates_[i];
      std::size_t count = 1;
      int attempt_count = first.attempt_count;
      while (i + count < candidates_.size() && continues(first, candidates_[i + count], count)) {
        attempt_count += candidates_[i + count++].attempt_count;
      }
      text += (i == 0 ? " " : "; ") + to_text(first.address);
      if (count > 1) text += " to " + std::to_string(candidates_[i + count - 1].address.port);
      text += ": " + first.last_error;
      if (attempt_count > 1) text += " (" + std::to_string(attempt_count) + " times)";
      i += count;
    }
    return {StatusCode::kTimeout, text};
  }

  static bool continues(const Candidate& first, const Candidate& next, std::size_t distance) {
    return next.address.ip == first.address.ip &&
           next.address.port == first.address.port + distance &&
           next.last_error == first.last_error;
  }

  const JoinSetup& setup_;
  const PhaseDeadline& deadline_;
  std::vector<Candidate> candidates_;
  Candidate* replying_ = nullptr;  // at most one at a time: the root would take two for two ranks
  std::optional<Result<Dialed>> outcome_;
};

}  // namespace

Result<Dialed> dial(const std::vector<Address>& addresses, const JoinSetup& setup,
                    const PhaseDeadline& deadline) {
  return Dialer(addresses, setup, deadline).run();
}

}  // namespace polyrail::bootstrap
