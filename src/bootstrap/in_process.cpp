// join_in_process: ranks that are threads of one process meet in shared memory.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include <polyrail/bootstrap.hpp>

#include "src/base/key.hpp"
#include "src/bootstrap/wording.hpp"

namespace polyrail {

using namespace bootstrap;  // the inner parts of this folder

namespace {

using Clock = std::chrono::steady_clock;

// What the ranks share. One round is one all_gather: it fills `arriving`, and the last to come
// turns it into `gathered`. The first failure ends the meeting for all ranks.
class Meeting {
 public:
  Meeting(int rank_count, const Key& key, std::int64_t timeout_ms)
      : key_(key), timeout_ms_(timeout_ms), arriving_(rank_count), has_left_(rank_count) {}

  int rank_count() const { return static_cast<int>(arriving_.size()); }
  const Key& key() const { return key_; }

  Result<std::vector<std::string>> all_gather(int rank, std::string_view phase,
                                              std::string_view message) {
    std::unique_lock lock(mutex_);
    if (!failure_.is_ok()) return failure_;
    if (Status status = enter(rank, phase, message); !status.is_ok()) return fail(status);
    if (arrived_count_ == rank_count()) {
      finish_round();
      return take();
    }
    const std::uint64_t round = round_;
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms_);
    while (round_ == round && failure_.is_ok()) {
      if (changed_.wait_until(lock, deadline) == std::cv_status::timeout && round_ == round &&
          failure_.is_ok()) {
        return fail(missing_at_deadline(phase_, rank_list(missing()), timeout_ms_));
      }
    }
    // A round that became complete counts, even if somebody has left since.
    if (round_ == round) return failure_;
    return take();
  }

  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    has_left_[rank] = true;
    if (failure_.is_ok() && arrived_count_ > 0 && !arriving_[rank].has_value()) {
      fail(left(rank, phase_));
    }
  }

 private:
  Status enter(int rank, std::string_view phase, std::string_view message) {
    if (Status status = check_message(rank, phase, message.size()); !status.is_ok()) return status;
    if (arrived_count_ == 0) {
      phase_ = phase;
      first_rank_ = rank;
    }
    if (phase != phase_) {
      return different_phases(rank_list({first_rank_}), phase_, rank_list({rank}), phase);
    }
    for (int other = 0; other < rank_count(); ++other) {
      if (has_left_[other] && !arriving_[other].has_value()) return left(other, phase);
    }
    arriving_[rank] = std::string(message);
    ++arrived_count_;
    return ok();
  }

  void finish_round() {
    gathered_.clear();
    for (auto& message : arriving_) {
      gathered_.push_back(std::move(*message));
      message.reset();
    }
    arrived_count_ = 0;
    taken_count_ = 0;
    ++round_;
    changed_.notify_all();
  }

  // The next round cannot end before everybody has taken this one.
  std::vector<std::string> take() {
    if (++taken_count_ == rank_count()) return std::move(gathered_);
    return gathered_;
  }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < rank_count(); ++rank) {
      if (!arriving_[rank].has_value()) ranks.push_back(rank);
    }
    return ranks;
  }

  static Status left(int rank, std::string_view phase) {
    return {StatusCode::kRemoteError, "phase '" + std::string(phase) + "': rank " +
                                          std::to_string(rank) + " has ended its bootstrap"};
  }

  const Status& fail(Status status) {
    failure_ = std::move(status);
    changed_.notify_all();
    return failure_;
  }

  const Key key_;
  const std::int64_t timeout_ms_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string phase_;
  int first_rank_ = 0;  // who opened the round
  std::vector<std::optional<std::string>> arriving_;
  int arrived_count_ = 0;
  std::vector<std::string> gathered_;
  int taken_count_ = 0;
  std::uint64_t round_ = 0;
  std::vector<bool> has_left_;
  Status failure_;
};

class InProcessBootstrap final : public Bootstrap {
 public:
  // The meeting is shared by the ranks' bootstraps and ends with the last of them.
  InProcessBootstrap(std::shared_ptr<Meeting> meeting, int rank)
      : meeting_(std::move(meeting)), rank_(rank) {}
  ~InProcessBootstrap() override { meeting_->leave(rank_); }

  int rank() const override { return rank_; }
  int rank_count() const override { return meeting_->rank_count(); }
  const Key& key() const override { return meeting_->key(); }
  Result<std::vector<std::string>> all_gather(std::string_view phase,
                                              std::string_view message) override {
    return meeting_->all_gather(rank_, phase, message);
  }

 private:
  const std::shared_ptr<Meeting> meeting_;
  const int rank_;
};

}  // namespace

Result<std::vector<std::unique_ptr<Bootstrap>>> join_in_process(int rank_count,
                                                                const Options& options) {
  if (Status status = check_rank_count(rank_count); !status.is_ok()) return status;
  const Result<Key> key = random_key();
  if (!key.is_ok()) return key.status();
  const auto meeting = std::make_shared<Meeting>(rank_count, key.value(), options.start_timeout_ms);
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  for (int rank = 0; rank < rank_count; ++rank) {
    ranks.push_back(std::make_unique<InProcessBootstrap>(meeting, rank));
  }
  return ranks;
}

}  // namespace polyrail
