// Launch: what a launcher like torchrun tells each rank in its environment, as values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <polyrail/bootstrap.hpp>

#include "src/base/key.hpp"

namespace polyrail::bootstrap {

struct Launch {
  int rank = 0;
  int rank_count = 1;
  std::optional<UniqueId> unique_id;  // POLYRAIL_UNIQUE_ID; then the rest is not needed
  std::string master_host;            // MASTER_ADDR, a name or a number
  std::uint16_t master_port = 0;
  Key key{};  // POLYRAIL_KEY
};

// `get` returns the value of a variable, or nullptr. The error names the variable and what it
// should be, and never a secret.
Result<Launch> read_launch(const std::function<const char*(const char*)>& get);

// How rank 0 and the others find each other at MASTER_PORT: launchers may have a service of their
// own there. Rank 0 listens at the first free port of this and the eight after it; the others try
// them all, and only rank 0 can prove that it knows the key.
constexpr int kPortCount = 9;

Result<std::unique_ptr<Bootstrap>> join_launched(const Launch& launch, const Options& options);

}  // namespace polyrail::bootstrap
