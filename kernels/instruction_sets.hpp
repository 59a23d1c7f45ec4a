// Which instruction sets the kernels are compiled for; to be included before any of Highway.
#pragma once

// The last resort is one element at a time, also where the compiler could do EMU128, which depends
// on its version (GCC PR 106322).
#define HWY_BROKEN_EMU128 1
// SSSE3 without SSE4 is older than anything this runs on. SVE's vectors cannot be members of a
// struct; such machines have NEON, too.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
// Not compiled for unless asked for: fp8 takes its instructions on bytes.
#define HWY_WANT_AVX3_DL 1
