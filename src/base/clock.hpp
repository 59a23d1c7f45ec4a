// The clock of everything that is measured: microseconds, never set back, its beginning arbitrary.
#pragma once

#include <chrono>

namespace polyrail {

inline double now_us() {
  const auto since_beginning = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(since_beginning).count();
}

}  // namespace polyrail
