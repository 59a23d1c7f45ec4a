// Arithmetic on buffers: what reduce and copy steps run. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <polyrail/types.hpp>

namespace polyrail {

// What happens to each element after the last operand: divided by divide_by (1: nothing). Integers
// round towards zero; floats of 16 and 8 bits divide in fp32 before the one rounding. Only 1 for
// bitwise and logical operators, kMaxLoc and kMinLoc.
struct Finish {
  std::int64_t divide_by = 1;
};

// out[i] = finish(op(a[i], b[i])) for count elements. Any alignment; out may equal a or b, other
// overlap is not allowed. Precondition: can_reduce(type, op), and op is not kUser.
// - kAvg, kPreMulSum and kWeightedAvg compute like kSum; division and factors are the caller's, by
//   `finish` and `scale`.
// - Floats of 16 and 8 bits compute in fp32 and round once, to nearest even. fp8 saturates: what is
//   too large, infinity too, becomes the largest number.
// - min and max give NaN if either operand is NaN. For kMaxLoc and kMinLoc a NaN wins over numbers;
//   equal values, and two NaN, go by the smaller index.
// - Integer overflow wraps. Bytes of kBool other than 0 count as 1.
void reduce(DataType type, ReduceOp op, const void* a, const void* b, void* out, std::size_t count,
            Finish finish = {});

// out[i] = finish(op(...op(op(s0[i], s1[i]), s2[i])..., sk[i])): all sources in one pass, in the
// order given; floats of 16 and 8 bits round once at the end. At least one source; of a single one
// that is not divided the bits stay as they are. out may equal any source.
void reduce_many(DataType type, ReduceOp op, std::span<const void* const> sources, void* out,
                 std::size_t count, Finish finish = {});

// target[i] = factor * source[i]. target may equal source. Types as for kPreMulSum.
// Floats of 16 and 8 bits compute in fp32 (with the factor rounded to it) and round once; complex
// numbers scale both parts; for integers the factor is rounded to the nearest one of the type and
// the product wraps.
void scale(DataType type, double factor, const void* source, void* target, std::size_t count);

// out[i] = finish(f0 * s0[i] + f1 * s1[i] + ...), in one pass and in the order given; numbers as in
// scale, products are rounded to the type of computation before they are added. As many factors as
// sources, at least one. out may equal any source.
void scaled_sum(DataType type, std::span<const void* const> sources,
                std::span<const double> factors, void* out, std::size_t count, Finish finish = {});

// target[i] = source[i] as another type of is_floating_point; the same type is a copy. The ranges
// must not overlap. Rounds once, to nearest even, from fp64 to narrow types, too; fp8 saturates.
// fp32 to and from fp16, bf16 and fp8 run at the speed of memory.
void cast(DataType from, DataType to, const void* source, void* target, std::size_t count);

// out[i] = finish(op(a[i], b[i])), where a and out are fp32 and b is of the narrower floating-point
// type `wire`: the result of a cast of b and a reduce, in one pass. out may equal a.
void reduce_mixed(ReduceOp op, DataType wire, const void* a, const void* b, void* out,
                  std::size_t count, Finish finish = {});

// Row i of target = row rows[i] of source. No overlap of source and target.
void pack_rows(const void* source, std::size_t row_bytes, std::span<const std::int64_t> rows,
               void* target);
// Row rows[i] of target = row i of source; of equal indices the last one stays.
void unpack_rows(const void* source, std::size_t row_bytes, std::span<const std::int64_t> rows,
                 void* target);

// Copies; the ranges must not overlap. Large copies pass by the cache where that is faster.
void copy(const void* source, void* target, std::size_t bytes);

// The instruction set chosen at run time, "AVX3_ZEN4", for polyrail-info.
const char* instruction_set();

}  // namespace polyrail
