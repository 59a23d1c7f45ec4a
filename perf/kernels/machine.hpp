// What this machine's memory allows: the plainest loops that read two arrays and write one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyrail::perf {

enum class MachineLoop : std::uint8_t {
  kStored,    // ordinary stores
  kStreamed,  // stores that pass the cache
  kCompiled,  // as the compiler makes it from "out[i] = a[i] + b[i]"
};

// out[i] = a[i] + b[i] in fp32, no conversion. Pointers and bytes are multiples of 64.
void machine_sum(MachineLoop loop, const float* a, const float* b, float* out, std::size_t bytes);
// The same with one source.
void machine_copy(MachineLoop loop, const float* source, float* target, std::size_t bytes);

}  // namespace polyrail::perf
