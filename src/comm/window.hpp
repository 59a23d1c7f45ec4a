// How a communicator makes a Window.
#pragma once

#include <cstdint>
#include <memory>

#include <polyrail/status.hpp>
#include <polyrail/window.hpp>

#include "src/exec/engine.hpp"

namespace polyrail {

// Collective. `id`: of the window among those of the communicator, the same on all ranks.
Result<std::unique_ptr<Window>> create_window(std::shared_ptr<Engine> engine, int rank,
                                              int rank_count, std::uint32_t id,
                                              std::uint64_t slot_count, std::uint64_t slot_bytes);

}  // namespace polyrail
