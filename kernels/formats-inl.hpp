// How a vector of elements becomes numbers and memory again, for each type. Compiled again for each
// instruction set (see ops.hpp); scalar-inl.hpp has the same for the set without vectors.
#if defined(PR_KERNELS_FORMATS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PR_KERNELS_FORMATS_INL_HPP
#undef PR_KERNELS_FORMATS_INL_HPP
#else
#define PR_KERNELS_FORMATS_INL_HPP
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "kernels/element.hpp"
#include "kernels/halves-inl.hpp"
#include "kernels/ops.hpp"
#include "kernels/request.hpp"
#include "kernels/simd-inl.hpp"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

// Memory is read and written as bytes, so that any alignment will do.
using Bytes = hn::ScalableTag<std::uint8_t>;

template <typename V>
HWY_INLINE void store_vector(Store how, V v, std::uint8_t* target) {
  const hn::Repartition<std::uint8_t, hn::DFromV<V>> d;
  if (how == Store::kStreamed) {
    hn::Stream(hn::BitCast(d, v), d, target);
  } else {
    hn::StoreU(hn::BitCast(d, v), d, target);
  }
}

// Value holds the numbers of kBytes of elements.
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
  template <typename Step>
  static HWY_INLINE Value first(Step step, Value v) {
    return step.template first<Simd, Lane>(v);
  }
  template <typename Step>
  static HWY_INLINE Value next(Step step, Value all, Value v, std::size_t source) {
    return step.template next<Simd, Lane>(all, v, source);
  }
  static HWY_INLINE Value divide(Value v, const Divider<Lane>& by) { return divided<Simd>(v, by); }
};

// Two vectors of fp32 for the 16-bit floats of one vector.
template <typename Lanes, typename FloatTag>
struct FloatPair {
  using D = FloatTag;
  struct Value {
    hn::Vec<D> first;
    hn::Vec<D> second;
  };
  static constexpr std::size_t kBytes = hn::MaxLanes(D()) * sizeof(float);

  template <typename Step>
  static HWY_INLINE Value first(Step step, Value v) {
    return {step.template first<Lanes, float>(v.first),
            step.template first<Lanes, float>(v.second)};
  }
  template <typename Step>
  static HWY_INLINE Value next(Step step, Value all, Value v, std::size_t source) {
    return {step.template next<Lanes, float>(all.first, v.first, source),
            step.template next<Lanes, float>(all.second, v.second, source)};
  }
  static HWY_INLINE Value divide(Value v, const Divider<float>& by) {
    return {divided<Lanes>(v.first, by), divided<Lanes>(v.second, by)};
  }
};

// first: the elements of even index, second: of odd index. No element leaves its 32-bit lane.
template <>
struct Format<DataType::kBfloat16> : FloatPair<Simd, hn::ScalableTag<float>> {
  static HWY_INLINE Value load(const std::uint8_t* source) {
    const hn::RebindToUnsigned<D> d;
    const auto bits = hn::BitCast(d, hn::LoadU(Bytes(), source));
    return {hn::BitCast(D(), hn::ShiftLeft<16>(bits)),
            hn::BitCast(D(), hn::And(bits, hn::Set(d, 0xffff0000u)))};
  }
  // A NaN made of bf16 operands has an empty lower half, whether it is one of them or the
  // processor's own: round_halves is right for all numbers that come here.
  static HWY_INLINE void store(Store how, Value v, std::uint8_t* target) {
    const auto even = Simd::as_bits(v.first);
    const auto odd = Simd::as_bits(v.second);
    store_vector(how, round_halves<Simd>(upper_halves(even, odd), lower_halves(even, odd)), target);
  }
};

// Additions on the multipliers: where the conversions of fp16 keep the adders busy, this is a fifth
// faster (Zen 4). The product with one is exact, so that the sum is rounded as always.
struct SimdBesideConversions : Simd {
  template <typename V>
  static HWY_INLINE V add(V a, V b) {
    return hn::MulAdd(a, hn::Set(hn::DFromV<V>(), 1.0f), b);
  }
};

// first: the lower half of the vector, second: the upper one. Vectors of at most 32 bytes: wider
// conversions cost more than two of these (Zen 4), elsewhere as much.
template <>
struct Format<DataType::kFloat16> : FloatPair<SimdBesideConversions, hn::CappedTag<float, 8>> {
  static constexpr bool kHasInstructions =
      HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL;
  using Halves = hn::Rebind<std::uint16_t, D>;
  using Floats16 = hn::Rebind<hwy::float16_t, D>;
  using HalfBytes = hn::Repartition<std::uint8_t, Halves>;

  static HWY_INLINE Value load(const std::uint8_t* source) {
    return {load_half(source), load_half(source + kBytes / 2)};
  }
  static HWY_INLINE void store(Store how, Value v, std::uint8_t* target) {
    if (how == Store::kStreamed) {
      const hn::Repartition<std::uint16_t, D> d;
      store_vector(how, hn::Combine(d, narrowed(v.second), narrowed(v.first)), target);
    } else {
      store_vector(how, narrowed(v.first), target);
      store_vector(how, narrowed(v.second), target + kBytes / 2);
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
  static HWY_INLINE hn::Vec<Halves> narrowed(hn::Vec<D> v) {
    if constexpr (kHasInstructions) {
      return hn::BitCast(Halves(), hn::DemoteTo(Floats16(), v));
    } else {
      return hn::DemoteTo(Halves(), hn::BitCast(hn::RebindToSigned<D>(), float16_bits<Simd>(v)));
    }
  }
};

// fp8: vector i of the four has byte i of each 32 bits, so that no element leaves its lane.
template <DataType type>
struct Float8Format {
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  struct Value {
    V v0, v1, v2, v3;
  };
  static constexpr std::size_t kBytes = hn::MaxLanes(Bytes());

  static HWY_INLINE Value load(const std::uint8_t* source) {
    const auto bits = hn::BitCast(hn::RebindToUnsigned<D>(), hn::LoadU(Bytes(), source));
    return {float_of_float8_bits<type, Simd>(hn::ShiftLeft<24>(bits)),
            float_of_float8_bits<type, Simd>(hn::ShiftLeft<16>(bits)),
            float_of_float8_bits<type, Simd>(hn::ShiftLeft<8>(bits)),
            float_of_float8_bits<type, Simd>(bits)};
  }
  static HWY_INLINE void store(Store how, Value v, std::uint8_t* target) {
    const auto lower =
        hn::Or(float8_bits<type, Simd>(v.v0), hn::ShiftLeft<8>(float8_bits<type, Simd>(v.v1)));
    const auto upper =
        hn::Or(float8_bits<type, Simd>(v.v2), hn::ShiftLeft<8>(float8_bits<type, Simd>(v.v3)));
    store_vector(how, hn::Or(lower, hn::ShiftLeft<16>(upper)), target);
  }
  template <typename Step>
  static HWY_INLINE Value first(Step step, Value v) {
    return {step.template first<Simd, float>(v.v0), step.template first<Simd, float>(v.v1),
            step.template first<Simd, float>(v.v2), step.template first<Simd, float>(v.v3)};
  }
  template <typename Step>
  static HWY_INLINE Value next(Step step, Value all, Value v, std::size_t source) {
    return {step.template next<Simd, float>(all.v0, v.v0, source),
            step.template next<Simd, float>(all.v1, v.v1, source),
            step.template next<Simd, float>(all.v2, v.v2, source),
            step.template next<Simd, float>(all.v3, v.v3, source)};
  }
  static HWY_INLINE Value divide(Value v, const Divider<float>& by) {
    return {divided<Simd>(v.v0, by), divided<Simd>(v.v1, by), divided<Simd>(v.v2, by),
            divided<Simd>(v.v3, by)};
  }
};
template <>
struct Format<DataType::kFloat8E4M3> : Float8Format<DataType::kFloat8E4M3> {};
template <>
struct Format<DataType::kFloat8E5M2> : Float8Format<DataType::kFloat8E5M2> {};

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET
#endif
