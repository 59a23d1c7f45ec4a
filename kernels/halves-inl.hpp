// The upper and the lower halves of the 32-bit lanes of two vectors, woven into one vector of
// 16-bit lanes. Apart because the instruction sets differ in it.
#if defined(PR_KERNELS_HALVES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PR_KERNELS_HALVES_INL_HPP
#undef PR_KERNELS_HALVES_INL_HPP
#else
#define PR_KERNELS_HALVES_INL_HPP
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<std::uint16_t>;
using DoubleWords = hn::ScalableTag<std::uint32_t>;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL

// One permutation each, instead of a shift and a blend. The index of a word: its lane in `even`, or
// 32 more for `odd`.
template <std::uint16_t upper>
HWY_INLINE hn::Vec<Words> woven(hn::Vec<DoubleWords> even, hn::Vec<DoubleWords> odd) {
  HWY_ALIGN static constexpr auto kIndices = [] {
    struct {
      std::uint16_t at[32];
    } indices{};
    for (std::uint16_t i = 0; i < 32; ++i) {
      indices.at[i] = static_cast<std::uint16_t>((i & ~1) + upper + (i % 2) * 32);
    }
    return indices;
  }();
  const auto indices = hn::Load(Words(), kIndices.at);
  return hn::Vec<Words>{_mm512_permutex2var_epi16(even.raw, indices.raw, odd.raw)};
}
HWY_INLINE hn::Vec<Words> upper_halves(hn::Vec<DoubleWords> even, hn::Vec<DoubleWords> odd) {
  return woven<1>(even, odd);
}
HWY_INLINE hn::Vec<Words> lower_halves(hn::Vec<DoubleWords> even, hn::Vec<DoubleWords> odd) {
  return woven<0>(even, odd);
}

#else

HWY_INLINE hn::Vec<Words> upper_halves(hn::Vec<DoubleWords> even, hn::Vec<DoubleWords> odd) {
  return hn::OddEven(hn::BitCast(Words(), odd), hn::BitCast(Words(), hn::ShiftRight<16>(even)));
}
HWY_INLINE hn::Vec<Words> lower_halves(hn::Vec<DoubleWords> even, hn::Vec<DoubleWords> odd) {
  return hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<16>(odd)), hn::BitCast(Words(), even));
}

#endif

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET
#endif
