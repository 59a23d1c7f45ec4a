// The arithmetic of every kernel, written once over Lanes (element.hpp): a single number on host
// or device, or a SIMD vector.
//
// No #pragma once: like Highway's own -inl headers this one is compiled again for each instruction
// set, because a function may only use the vectors of the set it was compiled for. Elsewhere
// (tests, CUDA) it is an ordinary header with an ordinary guard.
#if defined(PR_KERNELS_OPS_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PR_KERNELS_OPS_HPP
#undef PR_KERNELS_OPS_HPP
#else
#define PR_KERNELS_OPS_HPP
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <polyrail/types.hpp>

#include "kernels/element.hpp"

#ifdef HWY_NAMESPACE
HWY_BEFORE_NAMESPACE();
#define PR_LANES_NAMESPACE HWY_NAMESPACE
#else
#define PR_LANES_NAMESPACE one_lane
#endif

namespace polyrail::kernels::PR_LANES_NAMESPACE {

// --- operators: apply<Lanes, Number>(a, b); V is a value of Lanes made of Numbers.

template <ReduceOp op>
struct Operator;

template <>
struct Operator<ReduceOp::kSum> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    return Lanes::add(a, b);
  }
};

template <>
struct Operator<ReduceOp::kProd> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    return Lanes::multiply(a, b);
  }
};

// max and min do not depend on the order of their operands, or ranks that combine in different
// orders would end up with different zeros: +0 counts as larger than -0. A NaN goes through the
// sum, which is quiet.
template <typename Lanes, typename V>
PR_HOST_DEVICE V sum_if_nan(V a, V b, V otherwise) {
  return Lanes::select(Lanes::either(Lanes::is_nan(a), Lanes::is_nan(b)), Lanes::add(a, b),
                       otherwise);
}

template <>
struct Operator<ReduceOp::kMax> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    if constexpr (std::is_integral_v<Number>) {
      return Lanes::larger(a, b);
    } else {
      // Differ only for zeros of unlike sign (and NaN): there "and" is +0.
      return sum_if_nan<Lanes>(a, b, Lanes::bit_and(Lanes::larger(a, b), Lanes::larger(b, a)));
    }
  }
};

template <>
struct Operator<ReduceOp::kMin> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    if constexpr (std::is_integral_v<Number>) {
      return Lanes::smaller(a, b);
    } else {
      return sum_if_nan<Lanes>(a, b, Lanes::bit_or(Lanes::smaller(a, b), Lanes::smaller(b, a)));
    }
  }
};

template <>
struct Operator<ReduceOp::kBitAnd> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    return Lanes::bit_and(a, b);
  }
};

template <>
struct Operator<ReduceOp::kBitOr> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    return Lanes::bit_or(a, b);
  }
};

template <>
struct Operator<ReduceOp::kBitXor> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    return Lanes::bit_xor(a, b);
  }
};

// Of unsigned integers: 1 if v is not 0.
template <typename Lanes, typename Number, typename V>
PR_HOST_DEVICE V truth(V v) {
  static_assert(std::is_unsigned_v<Number>);
  return Lanes::smaller(v, Lanes::constant(v, Number{1}));
}

template <>
struct Operator<ReduceOp::kLogicalAnd> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    return truth<Lanes, Number>(Lanes::smaller(a, b));
  }
};

template <>
struct Operator<ReduceOp::kLogicalOr> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    return truth<Lanes, Number>(Lanes::bit_or(a, b));
  }
};

template <>
struct Operator<ReduceOp::kLogicalXor> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    return Lanes::bit_xor(truth<Lanes, Number>(a), truth<Lanes, Number>(b));
  }
};

// Of pairs with equal values, or with two NaN, that of the smaller index; a NaN wins over numbers.
template <typename Lanes, typename V, typename Wins>
PR_HOST_DEVICE V located(V a, V b, Wins wins) {
  const bool is_a_nan = Lanes::is_nan(a.value);
  const bool is_b_nan = Lanes::is_nan(b.value);
  if (is_a_nan != is_b_nan) return is_a_nan ? a : b;
  if (wins(a.value, b.value)) return a;
  if (wins(b.value, a.value)) return b;
  return Lanes::is_less(b.index, a.index) ? b : a;
}

template <>
struct Operator<ReduceOp::kMaxLoc> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    return located<Lanes>(a, b, [](auto x, auto y) { return Lanes::is_less(y, x); });
  }
};

template <>
struct Operator<ReduceOp::kMinLoc> {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE static V apply(V a, V b) {
    return located<Lanes>(a, b, [](auto x, auto y) { return Lanes::is_less(x, y); });
  }
};

// --- steps: how sources become one value, source after source.

// By an operator.
template <ReduceOp op>
struct Combine {
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE V first(V v) const {
    return v;
  }
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE V next(V all, V v, std::size_t) const {
    return Operator<op>::template apply<Lanes, Number>(all, v);
  }
};

// The sum of the sources times a factor each. Products are rounded before they are added, on
// instruction sets with a fused multiply-add, too.
template <typename Factor>
struct AddScaled {
  const Factor* factors;

  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE V first(V v) const {
    return Lanes::multiply(v, Lanes::constant(v, factors[0]));
  }
  template <typename Lanes, typename Number, typename V>
  PR_HOST_DEVICE V next(V all, V v, std::size_t source) const {
    return Lanes::add(all, Lanes::multiply(v, Lanes::constant(v, factors[source])));
  }
};

// --- Finish: the division after the last operand.

// How to divide numbers by one divisor, decided once per call.
template <typename Number>
struct Divider {
  enum class Way : std::uint8_t { kNothing, kMultiply, kDivide };
  // Integers divide in 64 bits: a divisor need not fit into the elements' type.
  using Divisor = std::conditional_t<std::is_integral_v<Number>, std::int64_t, Number>;
  Way way = Way::kNothing;
  Divisor divisor = 1;
  Number factor = 1;
};

// Precondition: divide_by >= 1.
template <typename Number>
PR_HOST_DEVICE Divider<Number> make_divider(std::int64_t divide_by) {
  using Way = typename Divider<Number>::Way;
  const auto divisor = static_cast<typename Divider<Number>::Divisor>(divide_by);
  if (divide_by == 1) return {};
  if constexpr (std::is_floating_point_v<Number>) {
    // The inverse of a power of two is exact: the product rounds as the quotient does.
    const bool has_exact_inverse = (divide_by & (divide_by - 1)) == 0;
    if (has_exact_inverse) return {Way::kMultiply, divisor, 1 / divisor};
  }
  return {Way::kDivide, divisor, 1};
}

template <typename Lanes, typename Number, typename V>
PR_HOST_DEVICE V divided(V v, const Divider<Number>& by) {
  using Way = typename Divider<Number>::Way;
  switch (by.way) {
    case Way::kNothing:
      return v;
    case Way::kMultiply:
      return Lanes::multiply(v, Lanes::constant(v, by.factor));
    case Way::kDivide:
      break;
  }
  return Lanes::divide(v, by.divisor);
}

// --- bf16: the upper half of an fp32.

// The nearest bf16 (ties to even) to an fp32 given as its two halves, in lanes of 16 bits. The
// upper half goes up by one if the lower is above the tie, 0x8000, or on it and the upper is odd; a
// carry into the exponent comes out right by itself. Not for a NaN with a bit set in the lower
// half: the carry could make it a number.
template <typename Lanes, typename Half>
PR_HOST_DEVICE Half round_halves(Half upper, Half lower) {
  const auto odd = Lanes::bit_and(upper, Lanes::constant(upper, std::uint16_t{1}));
  const auto tie = Lanes::constant(upper, std::uint16_t{0x8000});
  return Lanes::add_one_where(Lanes::is_less(tie, Lanes::bit_or(lower, odd)), upper);
}

// --- fp16, in lanes of 32 bits. For instruction sets that cannot convert it themselves.

// The fp16 pattern, in the lower half, nearest to v (ties to even); a NaN stays one, quiet, with
// the upper bits of its payload.
template <typename Lanes, typename V>
PR_HOST_DEVICE auto float16_bits(V v) {
  const auto bits = Lanes::as_bits(v);
  const auto size = Lanes::bit_and(bits, Lanes::constant(bits, 0x7fffffffu));
  // Normal: exponent bias 127 becomes 15; 13 bits of mantissa go.
  const auto last_bit =
      Lanes::bit_and(Lanes::template shift_right<13>(size), Lanes::constant(bits, 1u));
  const auto rebiased = Lanes::subtract(size, Lanes::constant(bits, (112u << 23) - 0xfffu));
  const auto normal = Lanes::template shift_right<13>(Lanes::add(rebiased, last_bit));
  // Below 2^-14 the last place of the fp16 is that of fp32 at 0.5: the addition does the rounding.
  const auto half = Lanes::constant(v, 0.5f);
  const auto tiny = Lanes::subtract(Lanes::as_bits(Lanes::add(Lanes::as_float(size), half)),
                                    Lanes::as_bits(half));
  const auto nan = Lanes::bit_or(
      Lanes::template shift_right<13>(Lanes::bit_and(size, Lanes::constant(bits, 0x007fffffu))),
      Lanes::constant(bits, 0x7e00u));
  const auto is_tiny = Lanes::is_less(size, Lanes::constant(bits, 113u << 23));
  const auto is_finite = Lanes::is_less(size, Lanes::constant(bits, 143u << 23));
  const auto is_number = Lanes::is_less(size, Lanes::constant(bits, 0x7f800001u));
  const auto infinite = Lanes::select(is_number, Lanes::constant(bits, 0x7c00u), nan);
  const auto finite = Lanes::select(is_tiny, tiny, normal);
  const auto sign =
      Lanes::bit_and(Lanes::template shift_right<16>(bits), Lanes::constant(bits, 0x8000u));
  return Lanes::bit_or(sign, Lanes::select(is_finite, finite, infinite));
}

// fp32 of the fp16 pattern in the lower half; the upper half is 0.
template <typename Lanes, typename Bits>
PR_HOST_DEVICE auto float_of_float16_bits(Bits bits) {
  const auto size =
      Lanes::template shift_left<13>(Lanes::bit_and(bits, Lanes::constant(bits, 0x7fffu)));
  const auto normal = Lanes::add(size, Lanes::constant(bits, 112u << 23));
  const auto infinite = Lanes::bit_or(size, Lanes::constant(bits, 0x7f800000u));
  // A tiny one's mantissa as that of a number with exponent 2^-14, less the one put before it.
  const auto least = Lanes::constant(bits, 113u << 23);
  const auto tiny = Lanes::as_bits(
      Lanes::subtract(Lanes::as_float(Lanes::add(size, least)), Lanes::as_float(least)));
  const auto is_tiny = Lanes::is_less(size, Lanes::constant(bits, 1u << 23));
  const auto is_finite = Lanes::is_less(size, Lanes::constant(bits, 31u << 23));
  const auto number = Lanes::select(is_finite, Lanes::select(is_tiny, tiny, normal), infinite);
  const auto sign =
      Lanes::template shift_left<16>(Lanes::bit_and(bits, Lanes::constant(bits, 0x8000u)));
  return Lanes::as_float(Lanes::bit_or(sign, number));
}

// --- fp8, in lanes of 32 bits.

template <DataType type>
struct Float8;
template <>
struct Float8<DataType::kFloat8E4M3> {
  static constexpr int kMantissaBits = 3;
  static constexpr int kBias = 7;
  static constexpr float kMax = 448;
};
template <>
struct Float8<DataType::kFloat8E5M2> {
  static constexpr int kMantissaBits = 2;
  static constexpr int kBias = 15;
  static constexpr float kMax = 57344;
};

// fp32 of the fp8 pattern in the uppermost byte; whatever is below does not count.
template <DataType type, typename Lanes, typename Bits>
PR_HOST_DEVICE auto float_of_float8_bits(Bits bits) {
  using Format = Float8<type>;
  constexpr int kPlaces = 23 - Format::kMantissaBits;  // from the last one to that of an fp32
  constexpr std::uint32_t kRebias = (127u - Format::kBias) << 23;
  const auto size = Lanes::bit_and(Lanes::template shift_right<24 - kPlaces>(bits),
                                   Lanes::constant(bits, 0x7fu << kPlaces));
  // As if all were normal. A tiny one t comes out as u = (t + least) / 2: 2u - least is right. That
  // is less than u for tiny ones only.
  const auto normal = Lanes::as_float(Lanes::add(size, Lanes::constant(bits, kRebias)));
  const auto least = Lanes::constant(normal, OneLane::as_float(kRebias + (1u << 23)));  // not tiny
  const auto number = Lanes::smaller(normal, Lanes::add(normal, Lanes::subtract(normal, least)));
  // Above the largest: NaN, or infinity, by the mantissa.
  const auto special =
      Lanes::as_float(Lanes::bit_or(Lanes::as_bits(normal), Lanes::constant(bits, 0x7f800000u)));
  const auto is_special = Lanes::is_less(Lanes::constant(normal, Format::kMax), normal);
  return Lanes::as_float(Lanes::or_and(Lanes::as_bits(Lanes::select(is_special, special, number)),
                                       bits, Lanes::constant(bits, 0x80000000u)));
}

// The fp8 pattern, in the lowest byte, nearest to v (ties to even). What is too large becomes the
// largest number, a NaN 0x7f with its sign.
template <DataType type, typename Lanes, typename V>
PR_HOST_DEVICE auto float8_bits(V v) {
  using Format = Float8<type>;
  constexpr int kPlaces = 23 - Format::kMantissaBits;
  constexpr std::uint32_t kLeast = 128u - Format::kBias;  // exponent of the least normal number
  // Added to the last byte of the sum below, with the exponent's bits, it makes the pattern. Even,
  // so that ties stay where they are.
  constexpr std::uint32_t kRebias =
      (0u - ((static_cast<std::uint32_t>(kPlaces) + kLeast) << Format::kMantissaBits)) & 0xffu;
  static_assert(kRebias % 2 == 0);
  const auto bits = Lanes::as_bits(v);
  const auto size = Lanes::smaller(Lanes::bit_and(bits, Lanes::constant(bits, 0x7fffffffu)),
                                   Lanes::constant(bits, OneLane::as_bits(Format::kMax)));
  // Next to a number whose last place is the pattern's, the addition does the rounding.
  const auto exponent = Lanes::larger(Lanes::bit_and(size, Lanes::constant(bits, 0x7f800000u)),
                                      Lanes::constant(bits, kLeast << 23));
  const auto large = Lanes::add(
      exponent, Lanes::constant(bits, (static_cast<std::uint32_t>(kPlaces) << 23) + kRebias));
  const auto rounded = Lanes::as_bits(Lanes::add(Lanes::as_float(size), Lanes::as_float(large)));
  const auto finite = Lanes::add(rounded, Lanes::template shift_right<kPlaces>(rounded));
  const auto nan = Lanes::constant(bits, 0x7fu);
  // As floats, because a mask is for lanes of one kind.
  const auto pattern = Lanes::as_bits(Lanes::select(Lanes::is_nan(v), Lanes::as_float(nan),
                                                    Lanes::as_float(Lanes::bit_and(finite, nan))));
  return Lanes::or_and(pattern, Lanes::template shift_right<24>(bits),
                       Lanes::constant(bits, 0x80u));
}

// --- one element between memory and computation

template <DataType type>
PR_HOST_DEVICE Number<type> to_number(Stored<type> element) {
  if constexpr (type == DataType::kFloat16) {
    return float_of_float16_bits<OneLane>(std::uint32_t{element});
  } else if constexpr (type == DataType::kBfloat16) {
    return OneLane::as_float(std::uint32_t{element} << 16);
  } else if constexpr (type == DataType::kFloat8E4M3 || type == DataType::kFloat8E5M2) {
    return float_of_float8_bits<type, OneLane>(std::uint32_t{element} << 24);
  } else {
    return element;
  }
}

template <DataType type>
PR_HOST_DEVICE Stored<type> to_element(Number<type> number) {
  if constexpr (type == DataType::kFloat16) {
    return static_cast<std::uint16_t>(float16_bits<OneLane>(number));
  } else if constexpr (type == DataType::kBfloat16) {
    const std::uint32_t bits = OneLane::as_bits(number);
    const auto upper = static_cast<std::uint16_t>(bits >> 16);
    if (OneLane::is_nan(number)) return static_cast<std::uint16_t>(upper | 0x40);  // quiet
    return round_halves<OneLane>(upper, static_cast<std::uint16_t>(bits));
  } else if constexpr (type == DataType::kFloat8E4M3 || type == DataType::kFloat8E5M2) {
    return static_cast<std::uint8_t>(float8_bits<type, OneLane>(number));
  } else {
    return number;
  }
}

}  // namespace polyrail::kernels::PR_LANES_NAMESPACE

#ifdef HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#undef PR_LANES_NAMESPACE
#endif
