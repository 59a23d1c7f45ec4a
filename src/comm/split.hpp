// split: the ranks of one bootstrap part into groups that each get a bootstrap of their own.
#pragma once

#include <memory>

#include <polyrail/bootstrap.hpp>
#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

namespace polyrail {

// Collective over the parent's ranks. The bootstrap of the ranks with this color, numbered by
// (key, parent's rank); null with Communicator::kNoColor. What one rank finds wrong all are told.
Result<std::unique_ptr<Bootstrap>> split(Bootstrap& parent, int color, int key,
                                         const Options& options);

}  // namespace polyrail
