#include "src/bootstrap/wording.hpp"

namespace polyrail::bootstrap {

std::string rank_list(const std::vector<int>& ranks) {
  constexpr std::size_t kMostNamed = 16;
  const std::size_t named = ranks.size() <= kMostNamed ? ranks.size() : kMostNamed;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < named; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (named < ranks.size()) text += " and " + std::to_string(ranks.size() - named) + " more";
  return text;
}

Status check_rank_count(int rank_count) {
  if (rank_count >= 1 && rank_count <= kMaxRankCount) return ok();
  return {StatusCode::kInvalidArgument, "a group of " + std::to_string(rank_count) +
                                            " ranks is not possible; 1 to " +
                                            std::to_string(kMaxRankCount) + " are"};
}

Status check_rank(int rank, int rank_count) {
  if (Status status = check_rank_count(rank_count); !status.is_ok()) return status;
  if (rank >= 0 && rank < rank_count) return ok();
  return {StatusCode::kInvalidArgument,
          "rank " + std::to_string(rank) + " is out of range: of " + std::to_string(rank_count) +
              " ranks the last is rank " + std::to_string(rank_count - 1)};
}

Status check_message(int rank, std::string_view phase, std::size_t message_bytes) {
  if (phase.size() > kMaxPhaseBytes) {
    return {StatusCode::kInvalidArgument, "rank " + std::to_string(rank) +
                                              ": the name of a phase has " +
                                              std::to_string(phase.size()) + " bytes; " +
                                              std::to_string(kMaxPhaseBytes) + " are allowed"};
  }
  if (message_bytes > kMaxMessageBytes) {
    return {StatusCode::kInvalidArgument, "phase '" + std::string(phase) +
                                              "': the message of rank " + std::to_string(rank) +
                                              " has " + std::to_string(message_bytes) + " bytes; " +
                                              std::to_string(kMaxMessageBytes) + " are allowed"};
  }
  return ok();
}

Status missing_at_deadline(std::string_view phase, const std::string& who,
                           std::int64_t timeout_ms) {
  return {StatusCode::kTimeout, "phase '" + std::string(phase) + "': " + who +
                                    " did not come within " + std::to_string(timeout_ms) +
                                    " ms (option start_timeout_ms)"};
}

Status different_phases(std::string_view who_a, std::string_view phase_a, std::string_view who_b,
                        std::string_view phase_b) {
  return {StatusCode::kInvalidUsage, std::string(who_a) + " is in phase '" + std::string(phase_a) +
                                         "' of start-up, " + std::string(who_b) + " in phase '" +
                                         std::string(phase_b) + "'"};
}

}  // namespace polyrail::bootstrap
