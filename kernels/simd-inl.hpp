// The Lanes of one SIMD instruction set. Compiled again for each set (see ops.hpp).
#if defined(PR_KERNELS_SIMD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PR_KERNELS_SIMD_INL_HPP
#undef PR_KERNELS_SIMD_INL_HPP
#else
#define PR_KERNELS_SIMD_INL_HPP
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "kernels/element.hpp"
#include "kernels/ops.hpp"
#include "kernels/request.hpp"

#if HWY_TARGET != HWY_SCALAR  // that one has scalar-inl.hpp
HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The vectors of this instruction set behind the names of OneLane.
struct Simd {
  template <typename V>
  static HWY_INLINE V add(V a, V b) {
    return hn::Add(a, b);
  }
  template <typename V>
  static HWY_INLINE V subtract(V a, V b) {
    return hn::Sub(a, b);
  }
  template <typename V>
  static HWY_INLINE V multiply(V a, V b) {
    const hn::DFromV<V> d;
    if constexpr (sizeof(hn::TFromD<decltype(d)>) == 1) {  // in lanes of 16 bits
      const hn::Repartition<std::uint16_t, decltype(d)> words;
      const auto wide_a = hn::BitCast(words, a);
      const auto wide_b = hn::BitCast(words, b);
      const auto even = hn::And(hn::Mul(wide_a, wide_b), hn::Set(words, 0x00ff));
      const auto upper_b = hn::And(wide_b, hn::Set(words, 0xff00));
      return hn::BitCast(d, hn::Or(even, hn::Mul(hn::ShiftRight<8>(wide_a), upper_b)));
    } else {
      return hn::Mul(a, b);
    }
  }
  template <typename V, typename Divisor>
  static HWY_INLINE V divide(V a, Divisor divisor) {
    const hn::DFromV<V> d;
    using T = hn::TFromD<decltype(d)>;
    if constexpr (std::is_floating_point_v<T>) {
      return hn::Div(a, hn::Set(d, divisor));
    } else {  // no instruction set has a vector division of integers
      HWY_ALIGN T lanes[hn::MaxLanes(d)];
      hn::Store(a, d, lanes);
      for (T& lane : lanes) lane = OneLane::divide(lane, divisor);
      return hn::Load(d, lanes);
    }
  }
  template <typename V>
  static HWY_INLINE V larger(V a, V b) {
    return hn::Max(a, b);
  }
  template <typename V>
  static HWY_INLINE V smaller(V a, V b) {
    return hn::Min(a, b);
  }
  template <typename V>
  static HWY_INLINE auto is_less(V a, V b) {
    return hn::Lt(a, b);
  }
  template <typename V>
  static HWY_INLINE auto is_nan(V a) {
    return hn::IsNaN(a);
  }
  template <typename Mask>
  static HWY_INLINE Mask either(Mask a, Mask b) {
    return hn::Or(a, b);
  }
  template <typename Mask, typename V>
  static HWY_INLINE V select(Mask condition, V yes, V no) {
    return hn::IfThenElse(condition, yes, no);
  }
  template <typename Mask, typename V>
  static HWY_INLINE V add_one_where(Mask condition, V a) {
    const hn::DFromV<V> d;
    constexpr bool kHasMaskedAddition = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL;
    if constexpr (kHasMaskedAddition) {
      return hn::IfThenElse(condition, hn::Add(a, hn::Set(d, 1)), a);
    } else {
      return hn::Sub(a, hn::VecFromMask(d, condition));  // a true lane is -1
    }
  }

  template <typename V>
  static HWY_INLINE V bit_and(V a, V b) {
    return hn::And(a, b);
  }
  template <typename V>
  static HWY_INLINE V bit_or(V a, V b) {
    return hn::Or(a, b);
  }
  template <typename V>
  static HWY_INLINE V bit_xor(V a, V b) {
    return hn::Xor(a, b);
  }
  template <typename V>
  static HWY_INLINE V or_and(V a, V b, V c) {
    return hn::OrAnd(a, b, c);
  }
  template <int count, typename V>
  static HWY_INLINE V shift_left(V a) {
    return hn::ShiftLeft<count>(a);
  }
  template <int count, typename V>
  static HWY_INLINE V shift_right(V a) {
    return hn::ShiftRight<count>(a);
  }
  template <typename V>
  static HWY_INLINE auto as_float(V a) {
    return hn::BitCast(hn::RebindToFloat<hn::DFromV<V>>(), a);
  }
  template <typename V>
  static HWY_INLINE auto as_bits(V a) {
    return hn::BitCast(hn::RebindToUnsigned<hn::DFromV<V>>(), a);
  }
  template <typename V, typename T>
  static HWY_INLINE V constant(V, T value) {
    return hn::Set(hn::DFromV<V>(), value);
  }
};

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET
#endif
