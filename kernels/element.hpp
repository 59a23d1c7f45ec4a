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

// Stored: an element in memory. Number: what it is computed in.
template <DataType type>
struct Representation;
template <>
struct Representation<DataType::kInt32> {
  using Stored = std::int32_t;
  using Number = std::int32_t;
};
template <>
struct Representation<DataType::kInt64> {
  using Stored = std::int64_t;
  using Number = std::int64_t;
};
template <>
struct Representation<DataType::kFloat16> {
  using Stored = std::uint16_t;
  using Number = float;
};
template <>
struct Representation<DataType::kFloat32> {
  using Stored = float;
  using Number = float;
};
template <>
struct Representation<DataType::kFloat64> {
  using Stored = double;
  using Number = double;
};
template <>
struct Representation<DataType::kBfloat16> {
  using Stored = std::uint16_t;
  using Number = float;
};
template <DataType type>
using Stored = typename Representation<type>::Stored;
template <DataType type>
using Number = typename Representation<type>::Number;

// Calls f(TypeConstant<type>, OpConstant<op>). A new type or operator is added here and in ops.hpp.
template <typename F>
void with_constants(DataType type, ReduceOp op, F f) {
  const auto with_op = [&](auto type_constant) {
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:  // a sum; its division is in Finish
        return f(type_constant, OpConstant<ReduceOp::kSum>());
      case ReduceOp::kProd:
        return f(type_constant, OpConstant<ReduceOp::kProd>());
      case ReduceOp::kMax:
        return f(type_constant, OpConstant<ReduceOp::kMax>());
      case ReduceOp::kMin:
        return f(type_constant, OpConstant<ReduceOp::kMin>());
      default:
        return;
    }
  };
  switch (type) {
    case DataType::kInt32:
      return with_op(TypeConstant<DataType::kInt32>());
    case DataType::kInt64:
      return with_op(TypeConstant<DataType::kInt64>());
    case DataType::kFloat16:
      return with_op(TypeConstant<DataType::kFloat16>());
    case DataType::kFloat32:
      return with_op(TypeConstant<DataType::kFloat32>());
    case DataType::kFloat64:
      return with_op(TypeConstant<DataType::kFloat64>());
    case DataType::kBfloat16:
      return with_op(TypeConstant<DataType::kBfloat16>());
    default:
      return;
  }
}

// Lanes: the primitive operations that ops.hpp is written in. This class works on one number; the
// SIMD files have a class with the same functions for vectors.
class OneLane {
  template <typename T>
  PR_HOST_DEVICE static auto modular(T a) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<std::make_unsigned_t<T>>(a);
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
