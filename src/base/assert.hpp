// PR_ASSERT: a broken promise between Polyrail's own parts ends the process with place and text.
#pragma once

#include <cstdio>
#include <cstdlib>

#define PR_ASSERT(condition)                                                              \
  do {                                                                                    \
    if (!(condition)) [[unlikely]] {                                                      \
      std::fprintf(stderr, "polyrail: %s:%d: assertion failed: %s\n", __FILE__, __LINE__, \
                   #condition);                                                           \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)
