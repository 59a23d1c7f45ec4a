#include "tests/unit/kernels/oracle.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>
#include <type_traits>

namespace polyrail::oracle {

float decode(SmallFloat format, std::uint16_t bits) {
  const int all_mantissa = (1 << format.mantissa_bits) - 1;
  const int mantissa = bits & all_mantissa;
  const int exponent = (bits & 0x7fff) >> format.mantissa_bits;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent > format.max_exponent - format.min_exponent + 1) {
    const auto special = mantissa == 0 ? std::numeric_limits<float>::infinity()
                                       : std::numeric_limits<float>::quiet_NaN();
    return std::copysign(special, sign);
  }
  const int one = exponent == 0 ? 0 : all_mantissa + 1;  // the bit that is not stored
  const int scale = std::max(exponent, 1) - 1 + format.min_exponent - format.mantissa_bits;
  return sign * std::ldexp(static_cast<float>(one + mantissa), scale);
}

std::uint16_t encode(SmallFloat format, float value) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const int top = (format.max_exponent - format.min_exponent + 2) << format.mantissa_bits;
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | top | (1 << (format.mantissa_bits - 1)));
  }
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | top);
  const double size = std::fabs(static_cast<double>(value));
  if (size == 0) return static_cast<std::uint16_t>(sign);
  const int exponent = std::max(std::ilogb(size), format.min_exponent);
  // In units of the last place; a carry into the next exponent comes out right by itself.
  const int places =
      static_cast<int>(std::nearbyint(std::ldexp(size, format.mantissa_bits - exponent)));
  const int bits = ((exponent - format.min_exponent) << format.mantissa_bits) + places;
  return static_cast<std::uint16_t>(sign | std::min(bits, top));
}

namespace {

template <typename T>
T combine(ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (op == ReduceOp::kProd) return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    if (op == ReduceOp::kMax) return std::max(a, b);
    if (op == ReduceOp::kMin) return std::min(a, b);
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    if (op == ReduceOp::kProd) return a * b;
    if (op == ReduceOp::kSum || op == ReduceOp::kAvg) return a + b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    const bool takes_larger = op == ReduceOp::kMax;
    if (a == b) return std::signbit(a) == takes_larger ? b : a;  // of two zeros
    return (a < b) == takes_larger ? b : a;
  }
}

template <typename T>
T divide(T value, std::int64_t divide_by) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(value) / divide_by);
  } else {
    return value / static_cast<T>(divide_by);
  }
}

struct Same {
  template <typename T>
  static T from(T value) {
    return value;
  }
  template <typename T>
  static T to(T value) {
    return value;
  }
};
template <const SmallFloat& format>
struct Small {
  static float from(std::uint16_t bits) { return decode(format, bits); }
  static std::uint16_t to(float value) { return encode(format, value); }
};

template <typename Stored, typename Convert>
void reduce_as(ReduceOp op, std::span<const void* const> sources, void* out, std::size_t count,
               std::int64_t divide_by) {
  const auto load = [](const void* memory, std::size_t i) {
    Stored element;
    std::memcpy(&element, static_cast<const std::uint8_t*>(memory) + i * sizeof(Stored),
                sizeof(Stored));
    return Convert::from(element);
  };
  for (std::size_t i = 0; i < count; ++i) {
    auto value = load(sources[0], i);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      value = combine(op, value, load(sources[s], i));
    }
    const Stored element = Convert::to(divide(value, divide_by));
    std::memcpy(static_cast<std::uint8_t*>(out) + i * sizeof(Stored), &element, sizeof(Stored));
  }
}

template <typename T>
T special(std::uint64_t which) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, std::uint16_t>) {  // patterns of both 16-bit formats
    static constexpr T kPatterns[] = {0x0000, 0x8000, 0x0001, 0x83ff,
                                      0x7c00, 0xff80, 0x7f80, 0x7e01};
    return kPatterns[which];
  } else if constexpr (std::is_integral_v<T>) {
    const T values[] = {0, -1, 1, Limits::min(), Limits::max(), Limits::min() + 1, 2, -2};
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

double value_of(DataType type, const std::uint8_t* element) {
  const auto as = [&](auto value) {
    std::memcpy(&value, element, sizeof value);
    return value;
  };
  switch (type) {
    case DataType::kFloat16:
      return decode(kFloat16, as(std::uint16_t()));
    case DataType::kBfloat16:
      return decode(kBfloat16, as(std::uint16_t()));
    case DataType::kFloat32:
      return as(float());
    case DataType::kFloat64:
      return as(double());
    case DataType::kInt32:
      return as(std::int32_t());
    case DataType::kInt64:
      return static_cast<double>(as(std::int64_t()));
  }
  return 0;
}

}  // namespace

void reduce(DataType type, ReduceOp op, std::span<const void* const> sources, void* out,
            std::size_t count, std::int64_t divide_by) {
  switch (type) {
    case DataType::kInt32:
      return reduce_as<std::int32_t, Same>(op, sources, out, count, divide_by);
    case DataType::kInt64:
      return reduce_as<std::int64_t, Same>(op, sources, out, count, divide_by);
    case DataType::kFloat16:
      return reduce_as<std::uint16_t, Small<kFloat16>>(op, sources, out, count, divide_by);
    case DataType::kFloat32:
      return reduce_as<float, Same>(op, sources, out, count, divide_by);
    case DataType::kFloat64:
      return reduce_as<double, Same>(op, sources, out, count, divide_by);
    case DataType::kBfloat16:
      return reduce_as<std::uint16_t, Small<kBfloat16>>(op, sources, out, count, divide_by);
  }
}

std::string first_difference(DataType type, const void* expected, const void* got,
                             std::size_t count) {
  const std::size_t size = size_bytes(type);
  if (count == 0 || std::memcmp(expected, got, count * size) == 0) return "";
  for (std::size_t i = 0; i < count; ++i) {
    const auto* a = static_cast<const std::uint8_t*>(expected) + i * size;
    const auto* b = static_cast<const std::uint8_t*>(got) + i * size;
    if (std::memcmp(a, b, size) == 0) continue;
    if (std::isnan(value_of(type, a)) && std::isnan(value_of(type, b))) continue;
    std::ostringstream text;
    text << "element " << i << " of " << count << ": expected " << value_of(type, a) << ", got "
         << value_of(type, b);
    return text.str();
  }
  return "";
}

std::vector<std::uint8_t> random_elements(DataType type, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes(count * size_bytes(type));
  // A third each: any bits, small numbers, special ones.
  const auto fill = [&](auto zero, auto from_float) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bits = random();
      const std::uint64_t kind = random() % 3;
      T element;
      std::memcpy(&element, &bits, sizeof(T));
      if (kind == 1) element = static_cast<T>(from_float(static_cast<float>(bits % 65) / 4 - 8));
      if (kind == 2) element = special<T>(bits % 8);
      std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
    }
  };
  const auto itself = [](float value) { return value; };
  switch (type) {
    case DataType::kInt32:
      fill(std::int32_t(), itself);
      break;
    case DataType::kInt64:
      fill(std::int64_t(), itself);
      break;
    case DataType::kFloat16:
      fill(std::uint16_t(), [](float value) { return encode(kFloat16, value); });
      break;
    case DataType::kFloat32:
      fill(float(), itself);
      break;
    case DataType::kFloat64:
      fill(double(), itself);
      break;
    case DataType::kBfloat16:
      fill(std::uint16_t(), [](float value) { return encode(kBfloat16, value); });
      break;
  }
  return bytes;
}

}  // namespace polyrail::oracle
