#include "tests/unit/kernels/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>
#include <type_traits>

namespace polyrail::oracle {

float decode(SmallFloat format, std::uint16_t bits) {
  const int size = bits & (format.sign - 1);
  const float sign = (bits & format.sign) != 0 ? -1.0f : 1.0f;
  const bool has_infinity = format.infinity >= 0;
  if (has_infinity && size == format.infinity) {
    return sign * std::numeric_limits<float>::infinity();
  }
  if (size > (has_infinity ? format.infinity : format.largest)) {
    return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  }
  const int all_mantissa = (1 << format.mantissa_bits) - 1;
  const int mantissa = size & all_mantissa;
  const int exponent = size >> format.mantissa_bits;
  const int one = exponent == 0 ? 0 : all_mantissa + 1;  // the bit that is not stored
  const int scale = std::max(exponent, 1) - 1 + format.min_exponent - format.mantissa_bits;
  return sign * std::ldexp(static_cast<float>(one + mantissa), scale);
}

std::uint16_t encode(SmallFloat format, double value) {
  const int sign = std::signbit(value) ? format.sign : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | (format.sign - 1));
  const double size = std::fabs(value);
  if (std::isinf(size)) return static_cast<std::uint16_t>(sign | format.largest);
  if (size == 0) return static_cast<std::uint16_t>(sign);
  const int exponent = std::max(std::ilogb(size), format.min_exponent);
  // In units of the last place; a carry into the next exponent comes out right by itself.
  const int places =
      static_cast<int>(std::nearbyint(std::ldexp(size, format.mantissa_bits - exponent)));
  const int bits = ((exponent - format.min_exponent) << format.mantissa_bits) + places;
  return static_cast<std::uint16_t>(sign | std::min(bits, format.largest));
}

namespace {

template <typename T>
struct Complex {
  T real, imaginary;
};
template <typename V, typename I>
struct Pair {
  V value;
  I index;
};
struct Truth {
  bool is_true;
};

template <typename T>
T combine(ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::common_type_t<unsigned, std::make_unsigned_t<T>>;
    switch (op) {
      case ReduceOp::kProd:
        return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
      case ReduceOp::kMax:
        return std::max(a, b);
      case ReduceOp::kMin:
        return std::min(a, b);
      case ReduceOp::kBitAnd:
        return static_cast<T>(a & b);
      case ReduceOp::kBitOr:
        return static_cast<T>(a | b);
      case ReduceOp::kBitXor:
        return static_cast<T>(a ^ b);
      case ReduceOp::kLogicalAnd:
        return a != 0 && b != 0 ? 1 : 0;
      case ReduceOp::kLogicalOr:
        return a != 0 || b != 0 ? 1 : 0;
      case ReduceOp::kLogicalXor:
        return (a != 0) != (b != 0) ? 1 : 0;
      default:
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    }
  } else {
    if (op == ReduceOp::kProd) return a * b;
    if (op != ReduceOp::kMax && op != ReduceOp::kMin) return a + b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    const bool takes_larger = op == ReduceOp::kMax;
    if (a == b) return std::signbit(a) == takes_larger ? b : a;  // of two zeros
    return (a < b) == takes_larger ? b : a;
  }
}

template <typename T>
Complex<T> combine(ReduceOp op, Complex<T> a, Complex<T> b) {
  if (op != ReduceOp::kProd) return {a.real + b.real, a.imaginary + b.imaginary};
  // Variables of their own, so that no product is fused with the sum.
  const volatile T both_real = a.real * b.real, both_imaginary = a.imaginary * b.imaginary;
  const volatile T mixed = a.real * b.imaginary, mixed_too = a.imaginary * b.real;
  return {both_real - both_imaginary, mixed + mixed_too};
}

template <typename V, typename I>
Pair<V, I> combine(ReduceOp op, Pair<V, I> a, Pair<V, I> b) {
  const bool a_is_nan = std::isnan(static_cast<double>(a.value));
  const bool b_is_nan = std::isnan(static_cast<double>(b.value));
  const Pair<V, I> earlier = b.index < a.index ? b : a;
  if (a_is_nan && b_is_nan) return earlier;
  if (a_is_nan) return a;
  if (b_is_nan) return b;
  if (a.value == b.value) return earlier;
  return (a.value > b.value) == (op == ReduceOp::kMaxLoc) ? a : b;
}

Truth combine(ReduceOp op, Truth a, Truth b) {
  switch (op) {
    case ReduceOp::kProd:
    case ReduceOp::kMin:
    case ReduceOp::kBitAnd:
    case ReduceOp::kLogicalAnd:
      return {a.is_true && b.is_true};
    case ReduceOp::kBitXor:
    case ReduceOp::kLogicalXor:
      return {a.is_true != b.is_true};
    default:
      return {a.is_true || b.is_true};
  }
}

template <typename T>
T divide(T value, std::int64_t divide_by) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    return value / static_cast<std::uint64_t>(divide_by);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(value) / divide_by);
  } else {
    return value / static_cast<T>(divide_by);
  }
}
template <typename T>
Complex<T> divide(Complex<T> value, std::int64_t divide_by) {
  return {divide(value.real, divide_by), divide(value.imaginary, divide_by)};
}
template <typename V, typename I>
Pair<V, I> divide(Pair<V, I> value, std::int64_t) {
  return value;
}
Truth divide(Truth value, std::int64_t) {
  return value;
}

template <typename T>
T multiply(T value, double factor) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    T nearest = 0;
    if (!std::isnan(factor)) {
      const long double rounded = std::nearbyint(factor);  // holds every limit
      nearest = rounded < Limits::min()   ? Limits::min()
                : rounded > Limits::max() ? Limits::max()
                                          : static_cast<T>(rounded);
    }
    return combine(ReduceOp::kProd, value, nearest);
  } else {
    const volatile T product = value * static_cast<T>(factor);  // rounded
    return product;
  }
}
template <typename T>
Complex<T> multiply(Complex<T> value, double factor) {
  return {multiply(value.real, factor), multiply(value.imaginary, factor)};
}
template <typename V, typename I>
Pair<V, I> multiply(Pair<V, I> value, double) {
  return value;
}
Truth multiply(Truth value, double) {
  return value;
}

// How elements are stored, and become what is computed with.
template <typename T>
struct Same {
  using Stored = T;
  static T from(T value) { return value; }
  static T to(T value) { return value; }
  using Argument = T;
};
template <const SmallFloat& format, typename Bits>
struct Small {
  using Stored = Bits;
  static float from(Bits bits) { return decode(format, bits); }
  static Bits to(double value) { return static_cast<Bits>(encode(format, value)); }
  using Argument = double;
};
struct Byte {
  using Stored = std::uint8_t;
  static Truth from(std::uint8_t byte) { return {byte != 0}; }
  static std::uint8_t to(Truth value) { return value.is_true ? 1 : 0; }
  using Argument = Truth;
};

// f(Same<T>(), Small<...>() or Byte()).
template <typename F>
void with_format(DataType type, F f) {
  switch (type) {
    case DataType::kInt8:
      return f(Same<std::int8_t>());
    case DataType::kUint8:
      return f(Same<std::uint8_t>());
    case DataType::kInt16:
      return f(Same<std::int16_t>());
    case DataType::kUint16:
      return f(Same<std::uint16_t>());
    case DataType::kInt32:
      return f(Same<std::int32_t>());
    case DataType::kUint32:
      return f(Same<std::uint32_t>());
    case DataType::kInt64:
      return f(Same<std::int64_t>());
    case DataType::kUint64:
      return f(Same<std::uint64_t>());
    case DataType::kFloat16:
      return f(Small<kFloat16, std::uint16_t>());
    case DataType::kBfloat16:
      return f(Small<kBfloat16, std::uint16_t>());
    case DataType::kFloat8E4M3:
      return f(Small<kFloat8E4M3, std::uint8_t>());
    case DataType::kFloat8E5M2:
      return f(Small<kFloat8E5M2, std::uint8_t>());
    case DataType::kFloat32:
      return f(Same<float>());
    case DataType::kFloat64:
      return f(Same<double>());
    case DataType::kBool:
      return f(Byte());
    case DataType::kComplex64:
      return f(Same<Complex<float>>());
    case DataType::kComplex128:
      return f(Same<Complex<double>>());
    case DataType::kFloat32Index:
      return f(Same<Pair<float, std::int32_t>>());
    case DataType::kFloat64Index:
      return f(Same<Pair<double, std::int64_t>>());
    case DataType::kInt32Index:
      return f(Same<Pair<std::int32_t, std::int32_t>>());
    case DataType::kInt64Index:
      return f(Same<Pair<std::int64_t, std::int64_t>>());
    case DataType::kInt4x2:
      return;
  }
}

template <typename T>
T load(const void* memory, std::size_t i) {
  T element;
  std::memcpy(&element, static_cast<const std::uint8_t*>(memory) + i * sizeof(T), sizeof(T));
  return element;
}
template <typename T>
void store(void* memory, std::size_t i, T element) {
  std::memcpy(static_cast<std::uint8_t*>(memory) + i * sizeof(T), &element, sizeof(T));
}

template <typename T>
T special(std::uint64_t which) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, std::uint16_t>) {  // patterns of both 16-bit formats
    static constexpr T kPatterns[] = {0x0000, 0x8000, 0x0001, 0x83ff,
                                      0x7c00, 0xff80, 0x7f80, 0x7e01};
    return kPatterns[which];
  } else if constexpr (std::is_same_v<T, std::uint8_t>) {  // and of both 8-bit formats
    static constexpr T kPatterns[] = {0x00, 0x80, 0x01, 0x83, 0x7c, 0xff, 0x7e, 0xfb};
    return kPatterns[which];
  } else if constexpr (std::is_integral_v<T>) {
    const T values[] = {
        0, T(-1), 1, Limits::min(), Limits::max(), static_cast<T>(Limits::min() + 1), 2, T(-2)};
    return values[which];
  } else {
    const T values[] = {T(0),
                        -T(0),
                        Limits::denorm_min(),
                        -Limits::min(),
                        Limits::infinity(),
                        -Limits::infinity(),
                        Limits::max(),
                        Limits::quiet_NaN()};
    return values[which];
  }
}

template <typename T>
T random_number(std::mt19937_64& random, T (*from_double)(double)) {
  const std::uint64_t bits = random();
  switch (random() % 3) {
    case 0:
      return load<T>(&bits, 0);
    case 1:
      return from_double(static_cast<double>(bits % 65) / 4 - 8);
    default:
      return special<T>(bits % 8);
  }
}

template <typename T>
T convert(double value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <typename T>
T random_element(std::mt19937_64& random, Same<T>) {
  return random_number<T>(random, convert<T>);
}
template <typename T>
Complex<T> random_element(std::mt19937_64& random, Same<Complex<T>>) {
  const T real = random_number<T>(random, convert<T>);
  return {real, random_number<T>(random, convert<T>)};
}
template <typename V, typename I>
Pair<V, I> random_element(std::mt19937_64& random, Same<Pair<V, I>>) {
  const V value = random_number<V>(random, convert<V>);
  return {value, static_cast<I>(random() % 4)};
}
template <const SmallFloat& format, typename Bits>
Bits random_element(std::mt19937_64& random, Small<format, Bits>) {
  return random_number<Bits>(random, Small<format, Bits>::to);
}
std::uint8_t random_element(std::mt19937_64& random, Byte) {
  return random_number<std::uint8_t>(random, convert<std::uint8_t>);
}

template <typename T>
bool is_same(T a, T b) {
  if constexpr (std::is_arithmetic_v<T>) {
    if (a != a && b != b) return true;
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}
template <typename T>
bool is_same(Complex<T> a, Complex<T> b) {
  return is_same(a.real, b.real) && is_same(a.imaginary, b.imaginary);
}

template <typename T>
std::string text(T value) {
  std::ostringstream stream;
  stream << +value;
  return stream.str();
}
template <typename T>
std::string text(Complex<T> value) {
  return text(value.real) + " + " + text(value.imaginary) + " i";
}
template <typename V, typename I>
std::string text(Pair<V, I> value) {
  return text(value.value) + " at " + text(value.index);
}
std::string text(Truth value) {
  return text(value.is_true);
}

}  // namespace

void reduce(DataType type, ReduceOp op, std::span<const void* const> sources, void* out,
            std::size_t count, std::int64_t divide_by) {
  if (sources.size() == 1 && divide_by == 1) {
    if (count != 0) std::memcpy(out, sources[0], count * size_bytes(type));
    return;
  }
  with_format(type, [&](auto format) {
    using Format = decltype(format);
    using Stored = typename Format::Stored;
    for (std::size_t i = 0; i < count; ++i) {
      auto value = Format::from(load<Stored>(sources[0], i));
      for (std::size_t s = 1; s < sources.size(); ++s) {
        value = combine(op, value, Format::from(load<Stored>(sources[s], i)));
      }
      store<Stored>(out, i, Format::to(divide(value, divide_by)));
    }
  });
}

void scaled_sum(DataType type, std::span<const void* const> sources,
                std::span<const double> factors, void* out, std::size_t count,
                std::int64_t divide_by) {
  with_format(type, [&](auto format) {
    using Format = decltype(format);
    using Stored = typename Format::Stored;
    for (std::size_t i = 0; i < count; ++i) {
      auto value = multiply(Format::from(load<Stored>(sources[0], i)), factors[0]);
      for (std::size_t s = 1; s < sources.size(); ++s) {
        value = combine(ReduceOp::kSum, value,
                        multiply(Format::from(load<Stored>(sources[s], i)), factors[s]));
      }
      store<Stored>(out, i, Format::to(divide(value, divide_by)));
    }
  });
}

void cast(DataType from, DataType to, const void* source, void* target, std::size_t count) {
  if (from == to) {
    if (count != 0) std::memcpy(target, source, count * size_bytes(from));
    return;
  }
  with_format(from, [&](auto from_format) {
    with_format(to, [&](auto to_format) {
      using From = decltype(from_format);
      using To = decltype(to_format);
      using Number = decltype(From::from(typename From::Stored()));
      using Argument = typename To::Argument;
      if constexpr (std::is_floating_point_v<Number> && std::is_floating_point_v<Argument>) {
        for (std::size_t i = 0; i < count; ++i) {
          const auto value = From::from(load<typename From::Stored>(source, i));
          store<typename To::Stored>(target, i, To::to(static_cast<Argument>(value)));
        }
      }
    });
  });
}

void reduce_mixed(ReduceOp op, DataType wire, const void* a, const void* b, void* out,
                  std::size_t count, std::int64_t divide_by) {
  std::vector<float> wide(count);
  cast(wire, DataType::kFloat32, b, wide.data(), count);
  const void* const sources[] = {a, wide.data()};
  reduce(DataType::kFloat32, op, sources, out, count, divide_by);
}

std::string first_difference(DataType type, const void* expected, const void* got,
                             std::size_t count) {
  std::string difference;
  with_format(type, [&](auto format) {
    using Format = decltype(format);
    using Stored = typename Format::Stored;
    for (std::size_t i = 0; i < count && difference.empty(); ++i) {
      const auto a = load<Stored>(expected, i);
      const auto b = load<Stored>(got, i);
      if (is_same(a, b)) continue;
      if (is_floating_point(type) && is_same(Format::from(a), Format::from(b))) continue;
      difference = "element " + std::to_string(i) + " of " + std::to_string(count) + ": expected " +
                   text(Format::from(a)) + ", got " + text(Format::from(b));
    }
  });
  return difference;
}

std::vector<std::uint8_t> random_elements(DataType type, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes(count * size_bytes(type));
  with_format(type, [&](auto format) {
    for (std::size_t i = 0; i < count; ++i) store(bytes.data(), i, random_element(random, format));
  });
  return bytes;
}

}  // namespace polyrail::oracle
