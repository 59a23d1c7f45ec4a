// What the kernels should compute, written the plain way: one element after the other, 16-bit
// floats through ldexp and nearbyint instead of bit patterns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <polyrail/types.hpp>

namespace polyrail::oracle {

// A binary floating-point format of 16 bits.
struct SmallFloat {
  int mantissa_bits;
  int min_exponent;  // of normal numbers
  int max_exponent;
};
inline constexpr SmallFloat kFloat16 = {10, -14, 15};
inline constexpr SmallFloat kBfloat16 = {7, -126, 127};

float decode(SmallFloat format, std::uint16_t bits);
// To nearest, ties to even; NaN becomes a quiet NaN.
std::uint16_t encode(SmallFloat format, float value);

// As reduce_many in kernels/kernels.hpp.
void reduce(DataType type, ReduceOp op, std::span<const void* const> sources, void* out,
            std::size_t count, std::int64_t divide_by);

// "" if the elements are the same bits, or NaN in both; else the first difference.
std::string first_difference(DataType type, const void* expected, const void* got,
                             std::size_t count);

// Elements of every kind: small numbers, large ones, zeros of both signs, denormals, infinities,
// NaN, integers near the limits.
std::vector<std::uint8_t> random_elements(DataType type, std::size_t count, std::uint64_t seed);

}  // namespace polyrail::oracle
