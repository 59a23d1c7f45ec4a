// Reductions of integers of 8 and 16 bits, bitwise operators, once per instruction set.
#include "kernels/instruction_sets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/small_integers.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/loops-inl.hpp"
#include "kernels/request.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

void run_small_integers_here(const Request& request) {
  run_family(SmallIntegers(), request);
}

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyrail::kernels {

HWY_EXPORT(run_small_integers_here);

void run_small_integers(const Request& request) {
  HWY_DYNAMIC_DISPATCH(run_small_integers_here)(request);
}

}  // namespace polyrail::kernels
#endif
