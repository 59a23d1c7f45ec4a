// Logging: one logger per communicator, handed through constructors; never on the hot path.
#pragma once

#include <memory>
#include <string>

#include <spdlog/logger.h>
#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

namespace polyrail {

using Logger =
    std::shared_ptr<spdlog::logger>;  // shared by a communicator's parts, all its threads

// A logger that writes to the place and from the level that the options name.
Result<Logger> make_logger(const Options& options, const std::string& name);
// A logger that drops everything.
Logger silent_logger();

}  // namespace polyrail
