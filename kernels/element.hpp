// What an element is in memory, arithmetic on a single one, and the one place where a type and an
// operator known at run time become types. For host and device, free of any instruction set.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <polyrail/types.hpp>

#if defined(__CUDACC__)
#define PR_HOST_DEVICE __host__ __device__
#else
#define PR_HOST_DEVICE
#endif

namespace polyrail::kernels {

template <DataType type>
using TypeConstant = std::integral_constant<DataType, type>;
template <ReduceOp op>
using OpConstant = std::integral_constant<ReduceOp, op>;

// Elements of two parts.
template <typename T>
struct Complex {
  T real;
  T imaginary;
};
template <typename Value, typename Index>
struct Located {
  Value value;
  Index index;
};

// Stored: an element in memory. Number: what it is computed in.
template <typename Element, typename Computed = Element>
struct StoredAs {
  using Stored = Element;
  using Number = Computed;
};
template <DataType type>
struct Representation;
template <>
struct Representation<DataType::kInt8> : StoredAs<std::int8_t> {};
template <>
struct Representation<DataType::kUint8> : StoredAs<std::uint8_t> {};
template <>
struct Representation<DataType::kInt16> : StoredAs<std::int16_t> {};
template <>
struct Representation<DataType::kUint16> : StoredAs<std::uint16_t> {};
template <>
struct Representation<DataType::kInt32> : StoredAs<std::int32_t> {};
template <>
struct Representation<DataType::kUint32> : StoredAs<std::uint32_t> {};
template <>
struct Representation<DataType::kInt64> : StoredAs<std::int64_t> {};
template <>
struct Representation<DataType::kUint64> : StoredAs<std::uint64_t> {};
template <>
struct Representation<DataType::kFloat8E4M3> : StoredAs<std::uint8_t, float> {};
template <>
struct Representation<DataType::kFloat8E5M2> : StoredAs<std::uint8_t, float> {};
template <>
struct Representation<DataType::kFloat16> : StoredAs<std::uint16_t, float> {};
template <>
struct Representation<DataType::kBfloat16> : StoredAs<std::uint16_t, float> {};
template <>
struct Representation<DataType::kFloat32> : StoredAs<float> {};
template <>
struct Representation<DataType::kFloat64> : StoredAs<double> {};
template <>
struct Representation<DataType::kComplex64> : StoredAs<Complex<float>> {};
template <>
struct Representation<DataType::kComplex128> : StoredAs<Complex<double>> {};
template <>
struct Representation<DataType::kFloat32Index> : StoredAs<Located<float, std::int32_t>> {};
template <>
struct Representation<DataType::kFloat64Index> : StoredAs<Located<double, std::int64_t>> {};
template <>
struct Representation<DataType::kInt32Index> : StoredAs<Located<std::int32_t, std::int32_t>> {};
template <>
struct Representation<DataType::kInt64Index> : StoredAs<Located<std::int64_t, std::int64_t>> {};
template <DataType type>
using Stored = typename Representation<type>::Stored;
template <DataType type>
using Number = typename Representation<type>::Number;

// What a reduction is computed as: another one with the same result, where there is one, so that
// the loops need not be compiled for every type and operator. Precondition: can_reduce(type, op).
struct Computation {
  DataType type;
  ReduceOp op;
};
constexpr Computation computation_of(DataType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::kAvg:  // its division is in Finish
    case ReduceOp::kPreMulSum:
    case ReduceOp::kWeightedAvg:
      op = ReduceOp::kSum;
      break;
    default:
      break;
  }
  if (type == DataType::kBool) {
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kMax:
      case ReduceOp::kBitOr:
      case ReduceOp::kLogicalOr:
        return {DataType::kUint8, ReduceOp::kLogicalOr};
      case ReduceOp::kBitXor:
      case ReduceOp::kLogicalXor:
        return {DataType::kUint8, ReduceOp::kLogicalXor};
      default:
        return {DataType::kUint8, ReduceOp::kLogicalAnd};
    }
  }
  if (op >= ReduceOp::kBitAnd && op <= ReduceOp::kBitXor) return {DataType::kUint8, op};
  if (op >= ReduceOp::kLogicalAnd && op <= ReduceOp::kLogicalXor) {
    switch (size_bytes(type)) {
      case 1:
        return {DataType::kUint8, op};
      case 2:
        return {DataType::kUint16, op};
      case 4:
        return {DataType::kUint32, op};
      default:
        return {DataType::kUint64, op};
    }
  }
  if (op == ReduceOp::kSum && type == DataType::kComplex64) return {DataType::kFloat32, op};
  if (op == ReduceOp::kSum && type == DataType::kComplex128) return {DataType::kFloat64, op};
  return {type, op};
}

// Families of types: each is compiled on its own, as the loops take minutes together.
template <DataType... types>
struct TypeList {};
using Floats = TypeList<DataType::kFloat32, DataType::kFloat64>;
using Halves = TypeList<DataType::kFloat16, DataType::kBfloat16>;
using Float8s = TypeList<DataType::kFloat8E4M3, DataType::kFloat8E5M2>;
using NarrowFloats =
    TypeList<DataType::kFloat16, DataType::kBfloat16, DataType::kFloat8E4M3, DataType::kFloat8E5M2>;
using SmallIntegers =
    TypeList<DataType::kInt8, DataType::kUint8, DataType::kInt16, DataType::kUint16>;
using LargeIntegers =
    TypeList<DataType::kInt32, DataType::kUint32, DataType::kInt64, DataType::kUint64>;
using Structs = TypeList<DataType::kComplex64, DataType::kComplex128, DataType::kFloat32Index,
                         DataType::kFloat64Index, DataType::kInt32Index, DataType::kInt64Index>;

template <DataType... types>
constexpr bool contains(TypeList<types...>, DataType type) {
  return ((type == types) || ...);
}

// Calls f(TypeConstant<type>) if the list has the type.
template <DataType... types, typename F>
void with_type(TypeList<types...>, DataType type, F f) {
  const auto try_one = [&](auto constant) {
    if (type == constant()) f(constant);
  };
  (try_one(TypeConstant<types>()), ...);
}

// Calls f(TypeConstant<type>, OpConstant<op>) for what computation_of gives for types of the list.
// Only these combinations are compiled.
template <typename Types, typename F>
void with_constants(Types types, DataType type, ReduceOp op, F f) {
  with_type(types, type, [&](auto type_constant) {
    constexpr DataType kType = decltype(type_constant)::value;
    const auto try_one = [&](auto op_constant) {
      constexpr ReduceOp kOp = decltype(op_constant)::value;
      if constexpr (can_reduce(kType, kOp)) {
        constexpr Computation kComputation = computation_of(kType, kOp);
        if constexpr (kComputation.type == kType && kComputation.op == kOp) {
          if (op == kOp) f(type_constant, op_constant);
        }
      }
    };
    try_one(OpConstant<ReduceOp::kSum>());
    try_one(OpConstant<ReduceOp::kProd>());
    try_one(OpConstant<ReduceOp::kMax>());
    try_one(OpConstant<ReduceOp::kMin>());
    try_one(OpConstant<ReduceOp::kBitAnd>());
    try_one(OpConstant<ReduceOp::kBitOr>());
    try_one(OpConstant<ReduceOp::kBitXor>());
    try_one(OpConstant<ReduceOp::kLogicalAnd>());
    try_one(OpConstant<ReduceOp::kLogicalOr>());
    try_one(OpConstant<ReduceOp::kLogicalXor>());
    try_one(OpConstant<ReduceOp::kMaxLoc>());
    try_one(OpConstant<ReduceOp::kMinLoc>());
  });
}

// Lanes: the primitive operations that ops.hpp is written in. This class works on one number; the
// SIMD files have a class with the same functions for vectors.
class OneLane {
  template <typename T>
  PR_HOST_DEVICE static auto modular(T a) {
    if constexpr (std::is_integral_v<T>) {  // never promoted to int, whose product may overflow
      return static_cast<std::common_type_t<unsigned, std::make_unsigned_t<T>>>(a);
    } else {
      return a;
    }
  }
  template <typename T>
  PR_HOST_DEVICE static auto bits(T a) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<std::make_unsigned_t<T>>(a);
    } else {
      using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
      return std::bit_cast<Bits>(a);
    }
  }
  template <typename T, typename Bits>
  PR_HOST_DEVICE static T from_bits(Bits a) {
    return std::bit_cast<T>(static_cast<decltype(bits(T()))>(a));
  }

 public:
  // Integers wrap: computed unsigned, where that is defined.
  template <typename T>
  PR_HOST_DEVICE static T add(T a, T b) {
    return static_cast<T>(modular(a) + modular(b));
  }
  template <typename T>
  PR_HOST_DEVICE static T subtract(T a, T b) {
    return static_cast<T>(modular(a) - modular(b));
  }
  template <typename T>
  PR_HOST_DEVICE static T multiply(T a, T b) {
    return static_cast<T>(modular(a) * modular(b));
  }
  template <typename T>
  PR_HOST_DEVICE static Complex<T> multiply(Complex<T> a, Complex<T> b) {
    return {a.real * b.real - a.imaginary * b.imaginary,
            a.real * b.imaginary + a.imaginary * b.real};
  }
  // Precondition: divisor > 0. Integers round towards zero.
  template <typename T, typename Divisor>
  PR_HOST_DEVICE static T divide(T a, Divisor divisor) {
    return static_cast<T>(a / divisor);
  }
  // Of equal operands, or of an operand and a NaN: either one.
  template <typename T>
  PR_HOST_DEVICE static T larger(T a, T b) {
    return a < b ? b : a;
  }
  template <typename T>
  PR_HOST_DEVICE static T smaller(T a, T b) {
    return b < a ? b : a;
  }
  template <typename T>
  PR_HOST_DEVICE static bool is_less(T a, T b) {
    return a < b;
  }
  template <typename T>
  PR_HOST_DEVICE static bool is_nan(T a) {
    return a != a;
  }
  PR_HOST_DEVICE static bool either(bool a, bool b) { return a || b; }
  template <typename T>
  PR_HOST_DEVICE static T select(bool condition, T yes, T no) {
    return condition ? yes : no;
  }
  template <typename T>
  PR_HOST_DEVICE static T add_one_where(bool condition, T a) {
    return add(a, static_cast<T>(condition));
  }

  template <typename T>
  PR_HOST_DEVICE static T bit_and(T a, T b) {
    return from_bits<T>(bits(a) & bits(b));
  }
  template <typename T>
  PR_HOST_DEVICE static T bit_or(T a, T b) {
    return from_bits<T>(bits(a) | bits(b));
  }
  template <typename T>
  PR_HOST_DEVICE static T bit_xor(T a, T b) {
    return from_bits<T>(bits(a) ^ bits(b));
  }
  // a | (b & c)
  template <typename T>
  PR_HOST_DEVICE static T or_and(T a, T b, T c) {
    return bit_or(a, bit_and(b, c));
  }
  template <int count>
  PR_HOST_DEVICE static std::uint32_t shift_left(std::uint32_t a) {
    return a << count;
  }
  template <int count>
  PR_HOST_DEVICE static std::uint32_t shift_right(std::uint32_t a) {
    return a >> count;
  }
  PR_HOST_DEVICE static float as_float(std::uint32_t a) { return from_bits<float>(a); }
  PR_HOST_DEVICE static std::uint32_t as_bits(float a) { return bits(a); }
  // `value` in the shape of the first argument.
  template <typename T>
  PR_HOST_DEVICE static T constant(T, T value) {
    return value;
  }
};

}  // namespace polyrail::kernels
