// Networks for tests of messages and windows: each transport, and rails that misbehave.
#pragma once

#include <string>

#include "tests/collective/ranks.hpp"

namespace polyrail {

inline Options setting(const std::string& name) {
  if (name == "tcp_sockets") {
    Options options = quick_options("tcp");
    options.tcp_sockets = 3;
    return options;
  }
  if (name == "unlike_rails") {
    Options options = quick_options("loopback");
    options.virtual_rails = 3;
    options.fault =
        "loopback:delay=100us;loopback1:reorder=8,duplicate=0.2,delay=50us,seed=3;"
        "loopback2:rate=400MB/s,delay=300us";
    return options;
  }
  return quick_options(name);
}

inline const auto kSettings =
    testing::Values("loopback", "shm", "tcp", "tcp_sockets", "unlike_rails");

}  // namespace polyrail
