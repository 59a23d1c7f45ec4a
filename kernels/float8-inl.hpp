// A vector of fp8 as four vectors of fp32, and back. Apart because the instruction sets differ in
// it: which of the four an element goes to, too.
#if defined(PR_KERNELS_FLOAT8_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PR_KERNELS_FLOAT8_INL_HPP
#undef PR_KERNELS_FLOAT8_INL_HPP
#else
#define PR_KERNELS_FLOAT8_INL_HPP
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "kernels/element.hpp"
#include "kernels/ops.hpp"
#include "kernels/simd-inl.hpp"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<std::uint8_t>;

struct Floats4 {
  hn::Vec<hn::ScalableTag<float>> v0, v1, v2, v3;
};

#if HWY_TARGET == HWY_AVX3_DL

// A look-up of 64 bytes at once among 128, and from there bf16: a quarter of the instructions that
// the arithmetic takes.
template <DataType type>
struct Bfloat16s {
  alignas(64) std::uint8_t lower[128];
  alignas(64) std::uint8_t upper[128];

  static constexpr Bfloat16s make() {
    Bfloat16s table{};
    for (std::uint32_t i = 0; i < 128; ++i) {
      const auto bits = OneLane::as_bits(float_of_float8_bits<type, OneLane>(i << 24));
      table.lower[i] = static_cast<std::uint8_t>(bits >> 16);
      table.upper[i] = static_cast<std::uint8_t>(bits >> 24);
    }
    return table;
  }
};
template <DataType type>
inline constexpr Bfloat16s<type> kBfloat16s = Bfloat16s<type>::make();

// The instruction looks at the lower seven bits of an index.
HWY_INLINE hn::Vec<Bytes> look_up(const std::uint8_t* table, hn::Vec<Bytes> indices) {
  return {_mm512_permutex2var_epi8(hn::Load(Bytes(), table).raw, indices.raw,
                                   hn::Load(Bytes(), table + 64).raw)};
}

// v0 has elements 0, 2, 4 and 6 of each 16, v1 has 1, 3, 5 and 7; v2 and v3 those 8 further.
template <DataType type>
HWY_INLINE Floats4 widen_float8s(hn::Vec<Bytes> elements) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const auto lower = look_up(kBfloat16s<type>.lower, elements);
  const auto upper = hn::OrAnd(look_up(kBfloat16s<type>.upper, elements), elements,
                               hn::Set(Bytes(), std::uint8_t{0x80}));
  const auto first = hn::BitCast(bits, hn::InterleaveLower(Bytes(), lower, upper));
  const auto second = hn::BitCast(bits, hn::InterleaveUpper(Bytes(), lower, upper));
  const auto odd = hn::Set(bits, 0xffff0000u);
  return {hn::BitCast(d, hn::ShiftLeft<16>(first)), hn::BitCast(d, hn::And(first, odd)),
          hn::BitCast(d, hn::ShiftLeft<16>(second)), hn::BitCast(d, hn::And(second, odd))};
}

// Byte `which` of each 32 bits of the four, in the order of the elements.
template <int which, typename V>
HWY_INLINE hn::Vec<Bytes> gather_bytes(V v0, V v1, V v2, V v3) {
  HWY_ALIGN static constexpr auto kIndices = [] {
    struct {
      std::uint8_t at[64];
    } indices{};
    for (int i = 0; i < 64; ++i) {
      const int lane = i / 16 * 4 + i % 8 / 2;
      indices.at[i] = static_cast<std::uint8_t>(lane * 4 + which + i % 2 * 64);
    }
    return indices;
  }();
  const auto indices = hn::Load(Bytes(), kIndices.at).raw;
  const auto first = hn::Vec<Bytes>{_mm512_permutex2var_epi8(hn::BitCast(Bytes(), v0).raw, indices,
                                                             hn::BitCast(Bytes(), v1).raw)};
  const auto second = hn::Vec<Bytes>{_mm512_permutex2var_epi8(hn::BitCast(Bytes(), v2).raw, indices,
                                                              hn::BitCast(Bytes(), v3).raw)};
  const hn::Repartition<std::uint64_t, Bytes> d;
  return hn::BitCast(Bytes(),
                     hn::InterleaveLower(d, hn::BitCast(d, first), hn::BitCast(d, second)));
}

// A NaN passes the minimum, which gives its second operand then, and the rounding. Its last byte is
// 0, because it is one of fp8 operands or the processor's own: the pattern gets the upper bit.
template <DataType type, typename V>
HWY_INLINE auto rounded_float8(V v) {
  const hn::DFromV<V> d;
  return round_to_float8<type, Simd>(hn::Min(hn::Set(d, Float8<type>::kMax), hn::Abs(v)));
}
template <DataType type>
HWY_INLINE hn::Vec<Bytes> narrow_float8s(const Floats4& v) {
  const auto patterns =
      hn::Add(hn::Set(Bytes(), static_cast<std::uint8_t>(kFloat8Rebias<type>)),
              gather_bytes<0>(rounded_float8<type>(v.v0), rounded_float8<type>(v.v1),
                              rounded_float8<type>(v.v2), rounded_float8<type>(v.v3)));
  const auto is_nan = hn::MaskFromVec(patterns);  // has the upper bit
  return hn::OrAnd(hn::IfThenElse(is_nan, hn::Set(Bytes(), std::uint8_t{0x7f}), patterns),
                   gather_bytes<3>(v.v0, v.v1, v.v2, v.v3), hn::Set(Bytes(), std::uint8_t{0x80}));
}

#else

// Vector i has byte i of each 32 bits: no element leaves its lane.
template <DataType type>
HWY_INLINE Floats4 widen_float8s(hn::Vec<Bytes> elements) {
  const auto bits = hn::BitCast(hn::ScalableTag<std::uint32_t>(), elements);
  return {float_of_float8_bits<type, Simd>(hn::ShiftLeft<24>(bits)),
          float_of_float8_bits<type, Simd>(hn::ShiftLeft<16>(bits)),
          float_of_float8_bits<type, Simd>(hn::ShiftLeft<8>(bits)),
          float_of_float8_bits<type, Simd>(bits)};
}
template <DataType type>
HWY_INLINE hn::Vec<Bytes> narrow_float8s(const Floats4& v) {
  const auto lower =
      hn::Or(float8_bits<type, Simd>(v.v0), hn::ShiftLeft<8>(float8_bits<type, Simd>(v.v1)));
  const auto upper =
      hn::Or(float8_bits<type, Simd>(v.v2), hn::ShiftLeft<8>(float8_bits<type, Simd>(v.v3)));
  return hn::BitCast(Bytes(), hn::Or(lower, hn::ShiftLeft<16>(upper)));
}

#endif

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET
#endif
