// Loops between fp32 and narrower floating-point types, elements in their order. Compiled again for
// each instruction set (see ops.hpp).
#if defined(PR_KERNELS_CONVERT_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PR_KERNELS_CONVERT_INL_HPP
#undef PR_KERNELS_CONVERT_INL_HPP
#else
#define PR_KERNELS_CONVERT_INL_HPP
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "kernels/element.hpp"
#include "kernels/formats-inl.hpp"
#include "kernels/ops.hpp"
#include "kernels/request.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

template <DataType type>
struct Conversion {
  static constexpr std::size_t kCount = 1;

  static void widen(const std::uint8_t* source, float* target) {
    Stored<type> element;
    std::memcpy(&element, source, sizeof element);
    const float number = to_number<type>(element);
    std::memcpy(target, &number, sizeof number);
  }
  static void narrow(const float* source, std::uint8_t* target) {
    float number;
    std::memcpy(&number, source, sizeof number);
    const Stored<type> element = to_element<type>(number);
    std::memcpy(target, &element, sizeof element);
  }
};

#else

// fp32 is read and written as bytes, so that any alignment will do.
template <typename D>
HWY_INLINE hn::Vec<D> load_floats(D d, const float* source) {
  const hn::Repartition<std::uint8_t, D> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(source)));
}
template <typename D>
HWY_INLINE void store_floats(D d, hn::Vec<D> v, float* target) {
  const hn::Repartition<std::uint8_t, D> bytes;
  hn::StoreU(hn::BitCast(bytes, v), bytes, reinterpret_cast<std::uint8_t*>(target));
}

// kCount elements at a time.
template <DataType type>
struct Conversion {  // fp8
  using D = hn::ScalableTag<float>;
  using Bits = hn::RebindToUnsigned<D>;
  using Elements = hn::Rebind<std::uint8_t, D>;
  static constexpr std::size_t kCount = hn::MaxLanes(D());

  static HWY_INLINE void widen(const std::uint8_t* source, float* target) {
    const auto bits = hn::PromoteTo(Bits(), hn::LoadU(Elements(), source));
    store_floats(D(), float_of_float8_bits<type, Simd>(hn::ShiftLeft<24>(bits)), target);
  }
  static HWY_INLINE void narrow(const float* source, std::uint8_t* target) {
    const auto bits = float8_bits<type, Simd>(load_floats(D(), source));
    hn::StoreU(hn::DemoteTo(Elements(), hn::BitCast(hn::RebindToSigned<D>(), bits)), Elements(),
               target);
  }
};

template <>
struct Conversion<DataType::kBfloat16> {
  using F = Format<DataType::kBfloat16>;
  using D = F::D;
  using Bits = hn::RebindToUnsigned<D>;
  using Elements = hn::Rebind<std::uint16_t, D>;
  using ElementBytes = hn::Repartition<std::uint8_t, Elements>;
  static constexpr std::size_t kVector = hn::MaxLanes(D());
  static constexpr std::size_t kCount = 2 * kVector;

  static HWY_INLINE void widen(const std::uint8_t* source, float* target) {
    widen_vector(source, target);
    widen_vector(source + F::kBytes / 2, target + kVector);
  }
  static HWY_INLINE void narrow(const float* source, std::uint8_t* target) {
    const auto first = quiet(load_floats(D(), source));
    const auto second = quiet(load_floats(D(), source + kVector));
    F::store(Store::kCached,
             {hn::ConcatEven(D(), second, first), hn::ConcatOdd(D(), second, first)}, target);
  }

 private:
  static HWY_INLINE void widen_vector(const std::uint8_t* source, float* target) {
    const auto elements = hn::BitCast(Elements(), hn::LoadU(ElementBytes(), source));
    store_floats(D(), hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(Bits(), elements))), target);
  }
  // A NaN as the rounding of bf16 wants it.
  static HWY_INLINE hn::Vec<D> quiet(hn::Vec<D> v) {
    const auto nan = hn::Or(hn::And(v, Simd::as_float(hn::Set(Bits(), 0xffff0000u))),
                            Simd::as_float(hn::Set(Bits(), 0x7fc00000u)));
    return hn::IfThenElse(hn::IsNaN(v), nan, v);
  }
};

template <>
struct Conversion<DataType::kFloat16> {
  using F = Format<DataType::kFloat16>;
  using D = F::D;
  static constexpr std::size_t kCount = 2 * hn::MaxLanes(D());

  static HWY_INLINE void widen(const std::uint8_t* source, float* target) {
    const F::Value v = F::load(source);
    store_floats(D(), v.first, target);
    store_floats(D(), v.second, target + kCount / 2);
  }
  static HWY_INLINE void narrow(const float* source, std::uint8_t* target) {
    F::store(Store::kCached, {load_floats(D(), source), load_floats(D(), source + kCount / 2)},
             target);
  }
};

#endif  // HWY_TARGET

// Whole batches; the last one may overlap the one before, and fewer go through padded copies.
template <DataType type>
void widen(const std::uint8_t* source, float* target, std::size_t count) {
  using C = Conversion<type>;
  constexpr std::size_t kSize = size_bytes(type);
  if (count < C::kCount) {
    std::uint8_t elements[C::kCount * kSize] = {};
    float numbers[C::kCount];
    std::memcpy(elements, source, count * kSize);
    C::widen(elements, numbers);
    std::memcpy(static_cast<void*>(target), numbers, count * sizeof(float));
    return;
  }
  std::size_t i = 0;
  for (; i + C::kCount <= count; i += C::kCount) C::widen(source + i * kSize, target + i);
  if (i != count) C::widen(source + (count - C::kCount) * kSize, target + (count - C::kCount));
}

template <DataType type>
void narrow(const float* source, std::uint8_t* target, std::size_t count) {
  using C = Conversion<type>;
  constexpr std::size_t kSize = size_bytes(type);
  if (count < C::kCount) {
    float numbers[C::kCount] = {};
    std::uint8_t elements[C::kCount * kSize];
    std::memcpy(numbers, static_cast<const void*>(source), count * sizeof(float));
    C::narrow(numbers, elements);
    std::memcpy(target, elements, count * kSize);
    return;
  }
  std::size_t i = 0;
  for (; i + C::kCount <= count; i += C::kCount) C::narrow(source + i, target + i * kSize);
  if (i != count) C::narrow(source + (count - C::kCount), target + (count - C::kCount) * kSize);
}

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
