// Arithmetic on buffers: what reduce and copy steps run. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <polyrail/types.hpp>

namespace polyrail {

// What happens to each element after the last operand: divided by divide_by (1: nothing). Integers
// round towards zero; fp16 and bf16 divide in fp32 before the one rounding.
struct Finish {
  std::int64_t divide_by = 1;
};

// out[i] = finish(op(a[i], b[i])) for count elements. Any alignment; out may equal a or b, other
// overlap is not allowed. kAvg computes like kSum; the division is the caller's, by `finish`.
// fp16/bf16 compute in fp32 and round once (to nearest even). Integer overflow wraps. min and max
// give NaN if either operand is NaN.
void reduce(DataType type, ReduceOp op, const void* a, const void* b, void* out, std::size_t count,
            Finish finish = {});

// out[i] = finish(op(...op(op(s0[i], s1[i]), s2[i])..., sk[i])): all sources in one pass, in the
// order given; fp16/bf16 round once at the end. At least one source. out may equal any source.
void reduce_many(DataType type, ReduceOp op, std::span<const void* const> sources, void* out,
                 std::size_t count, Finish finish = {});

// Copies; the ranges must not overlap. Large copies pass by the cache where that is faster.
void copy(const void* source, void* target, std::size_t bytes);

// The instruction set chosen at run time, "AVX3_ZEN4", for polyrail-info.
const char* instruction_set();

}  // namespace polyrail
