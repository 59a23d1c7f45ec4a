// What the kernels should compute, written the plain way: one element after the other, small floats
// through ldexp and nearbyint instead of bit patterns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <polyrail/types.hpp>

namespace polyrail::oracle {

// A binary floating-point format of 16 or 8 bits.
struct SmallFloat {
  int mantissa_bits;
  int min_exponent;  // of normal numbers
  int sign;          // the bit
  int infinity;      // pattern; what is above is NaN
  int largest;       // what large numbers become: the infinity, or the largest number
};
inline constexpr SmallFloat kFloat16 = {10, -14, 0x8000, 0x7c00, 0x7c00};
inline constexpr SmallFloat kBfloat16 = {7, -126, 0x8000, 0x7f80, 0x7f80};
inline constexpr SmallFloat kFloat8E4M3 = {3, -6, 0x80, -1, 0x7e};
inline constexpr SmallFloat kFloat8E5M2 = {2, -14, 0x80, 0x7c, 0x7b};

float decode(SmallFloat format, std::uint16_t bits);
// To nearest, ties to even; NaN becomes a quiet NaN.
std::uint16_t encode(SmallFloat format, double value);

// As the functions of the same names in kernels/kernels.hpp; reduce is reduce_many there.
void reduce(DataType type, ReduceOp op, std::span<const void* const> sources, void* out,
            std::size_t count, std::int64_t divide_by);
void scaled_sum(DataType type, std::span<const void* const> sources,
                std::span<const double> factors, void* out, std::size_t count,
                std::int64_t divide_by);
void cast(DataType from, DataType to, const void* source, void* target, std::size_t count);
void reduce_mixed(ReduceOp op, DataType wire, const void* a, const void* b, void* out,
                  std::size_t count, std::int64_t divide_by);

// "" if the elements are the same bits, or NaN in both; else the first difference.
std::string first_difference(DataType type, const void* expected, const void* got,
                             std::size_t count);

// Elements of every kind: small numbers, large ones, zeros of both signs, denormals, infinities,
// NaN, integers near the limits. Pairs have few indices, so that many are equal.
std::vector<std::uint8_t> random_elements(DataType type, std::size_t count, std::uint64_t seed);

}  // namespace polyrail::oracle
