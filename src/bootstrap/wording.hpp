// Words and limits that all ways of joining share, so that the same failure reads the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <polyrail/status.hpp>

namespace polyrail::bootstrap {

constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;  // of one rank in one all_gather
constexpr std::size_t kMaxPhaseBytes = 200;                      // of the name of a phase
constexpr int kMaxRankCount = 1 << 16;

// "rank 3", "ranks 1 and 3", "ranks 0, 1, 2 and 61 more".
std::string rank_list(const std::vector<int>& ranks);

// The checks that every way of joining makes before anything else.
Status check_rank(int rank, int rank_count);
Status check_rank_count(int rank_count);
// One rank's part of an all_gather. The text names the rank and the phase.
Status check_message(int rank, std::string_view phase, std::size_t message_bytes);

// `who`: the ranks that are missing, as rank_list names them or better.
Status missing_at_deadline(std::string_view phase, const std::string& who, std::int64_t timeout_ms);
// Ranks that call all_gather for different phases.
Status different_phases(std::string_view who_a, std::string_view phase_a, std::string_view who_b,
                        std::string_view phase_b);

}  // namespace polyrail::bootstrap
