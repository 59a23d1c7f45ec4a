// Reductions of integers of 32 and 64 bits, once per instruction set.
#include "kernels/instruction_sets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/large_integers.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/loops-inl.hpp"
#include "kernels/request.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

void run_large_integers_here(const Request& request) {
  run_family(LargeIntegers(), request);
}

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyrail::kernels {

HWY_EXPORT(run_large_integers_here);

void run_large_integers(const Request& request) {
  HWY_DYNAMIC_DISPATCH(run_large_integers_here)(request);
}

}  // namespace polyrail::kernels
#endif
