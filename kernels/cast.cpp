// Conversions between floating-point types, once per instruction set, and the public functions that
// need them.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/instruction_sets.hpp"
#include "kernels/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/convert-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

void widen_here(DataType from, const std::uint8_t* source, float* target, std::size_t count) {
  with_type(NarrowFloats(), from, [&](auto type) HWY_ATTR { widen<type>(source, target, count); });
}
void narrow_here(DataType to, const float* source, std::uint8_t* target, std::size_t count) {
  with_type(NarrowFloats(), to, [&](auto type) HWY_ATTR { narrow<type>(source, target, count); });
}

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <bit>
#include <cmath>

#include "src/base/assert.hpp"

namespace polyrail {
namespace kernels {

HWY_EXPORT(widen_here);
HWY_EXPORT(narrow_here);

// In this namespace because the macro wants the bare names.
static void widen_best(DataType from, const void* source, void* target, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(widen_here)
  (from, static_cast<const std::uint8_t*>(source), static_cast<float*>(target), count);
}
static void narrow_best(DataType to, const void* source, void* target, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_here)
  (to, static_cast<const float*>(source), static_cast<std::uint8_t*>(target), count);
}

namespace {

// fp32 values of a piece on their way.
constexpr std::size_t kPiece = 2048;

// Calls f(start, count) for pieces of kPiece elements.
template <typename F>
void for_each_piece(std::size_t count, F f) {
  for (std::size_t start = 0; start < count; start += kPiece) {
    f(start, std::min(kPiece, count - start));
  }
}

const std::uint8_t* at(const void* array, DataType type, std::size_t index) {
  return static_cast<const std::uint8_t*>(array) + index * size_bytes(type);
}
std::uint8_t* at(void* array, DataType type, std::size_t index) {
  return static_cast<std::uint8_t*>(array) + index * size_bytes(type);
}

// To fp32 so that rounding once more, to fewer bits, gives what rounding `value` at once would: if
// it is not exact, the last bit of the fp32 is 1.
float rounded_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (nearest == value || std::isnan(value)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(nearest) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

template <typename From, typename To, typename F>
void convert_each(const void* source, void* target, std::size_t count, F f) {
  for (std::size_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, static_cast<const std::uint8_t*>(source) + i * sizeof(From),
                sizeof(From));
    const To converted = f(element);
    std::memcpy(static_cast<std::uint8_t*>(target) + i * sizeof(To), &converted, sizeof(To));
  }
}

// To and from fp32.
void widen_to_fp32(DataType from, const void* source, void* target, std::size_t count) {
  if (from != DataType::kFloat64) return widen_best(from, source, target, count);
  convert_each<double, float>(source, target, count,
                              [](double value) { return static_cast<float>(value); });
}
void narrow_from_fp32(DataType to, const void* source, void* target, std::size_t count) {
  if (to != DataType::kFloat64) return narrow_best(to, source, target, count);
  convert_each<float, double>(source, target, count,
                              [](float value) { return static_cast<double>(value); });
}

}  // namespace
}  // namespace kernels

void cast(DataType from, DataType to, const void* source, void* target, std::size_t count) {
  using namespace kernels;
  PR_ASSERT(is_floating_point(from) && is_floating_point(to));
  if (count == 0) return;
  if (from == to) return copy(source, target, count * size_bytes(from));
  if (to == DataType::kFloat32) return widen_to_fp32(from, source, target, count);
  if (from == DataType::kFloat32) return narrow_from_fp32(to, source, target, count);
  float piece[kPiece];
  for_each_piece(count, [&](std::size_t start, std::size_t length) {
    if (from == DataType::kFloat64) {
      convert_each<double, float>(at(source, from, start), piece, length, rounded_to_odd);
    } else {
      widen_to_fp32(from, at(source, from, start), piece, length);
    }
    narrow_from_fp32(to, piece, at(target, to, start), length);
  });
}

void reduce_mixed(ReduceOp op, DataType wire, const void* a, const void* b, void* out,
                  std::size_t count, Finish finish) {
  using namespace kernels;
  PR_ASSERT(is_floating_point(wire) && size_bytes(wire) < sizeof(float));
  // Through a piece that stays in the innermost cache: memory sees one pass.
  float piece[kPiece];
  for_each_piece(count, [&](std::size_t start, std::size_t length) {
    widen_to_fp32(wire, at(b, wire, start), piece, length);
    reduce(DataType::kFloat32, op, at(a, DataType::kFloat32, start), piece,
           at(out, DataType::kFloat32, start), length, finish);
  });
}

}  // namespace polyrail
#endif
