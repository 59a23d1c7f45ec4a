// Formats of the instruction set without vectors: one element at a time. Stands beside
// simd-inl.hpp.
#if defined(PR_KERNELS_SCALAR_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PR_KERNELS_SCALAR_INL_HPP
#undef PR_KERNELS_SCALAR_INL_HPP
#else
#define PR_KERNELS_SCALAR_INL_HPP
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "kernels/element.hpp"
#include "kernels/ops.hpp"
#include "kernels/request.hpp"

#if HWY_TARGET == HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

template <DataType type>
struct Format {
  using Value = Number<type>;
  static constexpr std::size_t kBytes = sizeof(Stored<type>);

  static Value load(const std::uint8_t* source) {
    Stored<type> element;
    std::memcpy(&element, source, kBytes);
    return to_number<type>(element);
  }
  static void store(Store, Value v, std::uint8_t* target) {
    const Stored<type> element = to_element<type>(v);
    std::memcpy(target, &element, kBytes);
  }
  template <typename Step>
  static Value first(Step step, Value v) {
    return step.template first<OneLane, Value>(v);
  }
  template <typename Step>
  static Value next(Step step, Value all, Value v, std::size_t source) {
    return step.template next<OneLane, Value>(all, v, source);
  }
  static Value divide(Value v, const Divider<Value>& by) { return divided<OneLane>(v, by); }
};

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET
#endif
