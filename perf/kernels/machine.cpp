#include "perf/kernels/machine.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "perf/kernels/machine.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/cache_control.h>

HWY_BEFORE_NAMESPACE();
namespace polyrail::perf::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <bool streamed, typename V, typename D>
HWY_INLINE void put(V v, D d, float* target) {
  if constexpr (streamed) {
    hn::Stream(v, d, target);
  } else {
    hn::Store(v, d, target);
  }
}

template <bool streamed>
void sum_in_fours(const float* a, const float* b, float* out, std::size_t count) {
  const hn::ScalableTag<float> d;
  constexpr std::size_t kStep = hn::MaxLanes(d);
  std::size_t i = 0;
  for (; i + 4 * kStep <= count; i += 4 * kStep) {
    put<streamed>(hn::Add(hn::Load(d, a + i), hn::Load(d, b + i)), d, out + i);
    for (std::size_t j : {kStep, 2 * kStep, 3 * kStep}) {
      put<streamed>(hn::Add(hn::Load(d, a + i + j), hn::Load(d, b + i + j)), d, out + i + j);
    }
  }
  for (; i < count; ++i) out[i] = a[i] + b[i];
}

void sum(MachineLoop loop, const float* a, const float* b, float* out, std::size_t count) {
  switch (loop) {
    case MachineLoop::kStored:
      return sum_in_fours<false>(a, b, out, count);
    case MachineLoop::kStreamed:
      sum_in_fours<true>(a, b, out, count);
      return hwy::FlushStream();
    case MachineLoop::kCompiled:
      for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
  }
}

void copy(MachineLoop loop, const float* source, float* target, std::size_t count) {
  const hn::ScalableTag<float> d;
  constexpr std::size_t kStep = hn::MaxLanes(d);
  if (loop == MachineLoop::kStreamed) {
    for (std::size_t i = 0; i < count; i += kStep)
      hn::Stream(hn::Load(d, source + i), d, target + i);
    hwy::FlushStream();
  } else {
    for (std::size_t i = 0; i < count; i += kStep)
      hn::Store(hn::Load(d, source + i), d, target + i);
  }
}

}  // namespace polyrail::perf::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyrail::perf {

HWY_EXPORT(sum);
HWY_EXPORT(copy);

void machine_sum(MachineLoop loop, const float* a, const float* b, float* out, std::size_t bytes) {
  HWY_DYNAMIC_DISPATCH(sum)(loop, a, b, out, bytes / sizeof(float));
}
void machine_copy(MachineLoop loop, const float* source, float* target, std::size_t bytes) {
  HWY_DYNAMIC_DISPATCH(copy)(loop, source, target, bytes / sizeof(float));
}

}  // namespace polyrail::perf
#endif
