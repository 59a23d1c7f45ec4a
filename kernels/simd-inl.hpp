// Lanes and memory formats of one SIMD instruction set. Compiled again for each set (see ops.hpp).
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
    return hn::Mul(a, b);
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

  template <typename V>
  static HWY_INLINE V bit_and(V a, V b) {
    return hn::And(a, b);
  }
  template <typename V>
  static HWY_INLINE V bit_or(V a, V b) {
    return hn::Or(a, b);
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

// Memory is read and written as bytes, so that any alignment will do.
using Bytes = hn::ScalableTag<std::uint8_t>;
using HalfBytes = hn::Half<Bytes>;
template <typename V>
HWY_INLINE void store_vector(Store how, V v, std::uint8_t* target) {
  const auto bytes = hn::BitCast(Bytes(), v);
  if (how == Store::kStreamed) {
    hn::Stream(bytes, Bytes(), target);
  } else {
    hn::StoreU(bytes, Bytes(), target);
  }
}

// Formats: how one vector of elements (kBytes) becomes numbers and memory again.
template <DataType type>
struct Format {
  using Lane = Number<type>;
  using D = hn::ScalableTag<Lane>;
  using Value = hn::Vec<D>;
  static constexpr std::size_t kBytes = hn::MaxLanes(Bytes());

  static HWY_INLINE Value load(const std::uint8_t* source) {
    return hn::BitCast(D(), hn::LoadU(Bytes(), source));
  }
  static HWY_INLINE void store(Store how, Value v, std::uint8_t* target) {
    store_vector(how, v, target);
  }
  template <typename Op>
  static HWY_INLINE Value combine(Value a, Value b) {
    return Op::template apply<Simd, Lane>(a, b);
  }
  static HWY_INLINE Value divide(Value v, const Divider<Lane>& by) { return divided<Simd>(v, by); }
};

// Two vectors of fp32 for the 16-bit floats of one vector.
struct FloatPair {
  using Lane = float;
  using D = hn::ScalableTag<float>;
  static constexpr std::size_t kBytes = hn::MaxLanes(Bytes());
  struct Value {
    hn::Vec<D> first;
    hn::Vec<D> second;
  };
  template <typename Op>
  static HWY_INLINE Value combine(Value a, Value b) {
    return {Op::template apply<Simd, Lane>(a.first, b.first),
            Op::template apply<Simd, Lane>(a.second, b.second)};
  }
  static HWY_INLINE Value divide(Value v, const Divider<Lane>& by) {
    return {divided<Simd>(v.first, by), divided<Simd>(v.second, by)};
  }
};

// first: the elements of even index, second: of odd index. No element crosses its 32-bit lane.
template <>
struct Format<DataType::kBfloat16> : FloatPair {
  using Bits = hn::ScalableTag<std::uint32_t>;

  static HWY_INLINE Value load(const std::uint8_t* source) {
    const auto bits = hn::BitCast(Bits(), hn::LoadU(Bytes(), source));
    return {hn::BitCast(D(), hn::ShiftLeft<16>(bits)), float_of_upper_half<Simd>(bits)};
  }
  static HWY_INLINE void store(Store how, Value v, std::uint8_t* target) {
    const auto even = hn::ShiftRight<16>(bfloat16_in_upper_half<Simd>(v.first));
    const auto odd = bfloat16_in_upper_half<Simd>(v.second);
    const hn::Repartition<std::uint16_t, Bits> halves;
    const auto both = hn::OddEven(hn::BitCast(halves, odd), hn::BitCast(halves, even));
    store_vector(how, both, target);
  }
};

// first: the lower half of the vector, second: the upper one.
template <>
struct Format<DataType::kFloat16> : FloatPair {
  static constexpr bool kHasInstructions =
      HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL;
  using Halves = hn::Rebind<std::uint16_t, D>;
  using Floats16 = hn::Rebind<hwy::float16_t, D>;
  using HalfBytes = hn::Half<Bytes>;

  static HWY_INLINE Value load(const std::uint8_t* source) {
    return {load_half(source), load_half(source + kBytes / 2)};
  }
  static HWY_INLINE void store(Store how, Value v, std::uint8_t* target) {
    if (how == Store::kStreamed) {
      hn::Stream(hn::Combine(Bytes(), narrowed(v.second), narrowed(v.first)), Bytes(), target);
    } else {
      hn::StoreU(narrowed(v.first), HalfBytes(), target);
      hn::StoreU(narrowed(v.second), HalfBytes(), target + kBytes / 2);
    }
  }

 private:
  static HWY_INLINE hn::Vec<D> load_half(const std::uint8_t* source) {
    const auto bytes = hn::LoadU(HalfBytes(), source);
    if constexpr (kHasInstructions) {
      return hn::PromoteTo(D(), hn::BitCast(Floats16(), bytes));
    } else {
      const hn::RebindToUnsigned<D> bits;
      return float_of_float16_bits<Simd>(hn::PromoteTo(bits, hn::BitCast(Halves(), bytes)));
    }
  }
  static HWY_INLINE hn::Vec<HalfBytes> narrowed(hn::Vec<D> v) {
    if constexpr (kHasInstructions) {
      return hn::BitCast(HalfBytes(), hn::DemoteTo(Floats16(), v));
    } else {
      const auto bits = hn::BitCast(hn::RebindToSigned<D>(), float16_bits<Simd>(v));
      return hn::BitCast(HalfBytes(), hn::DemoteTo(Halves(), bits));
    }
  }
};

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET
#endif
