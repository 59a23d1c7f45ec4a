// Reductions of fp32 and fp64, once per instruction set.
#include "kernels/instruction_sets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/loops-inl.hpp"
#include "kernels/request.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

void run_floats_here(const Request& request) {
  run_family(Floats(), request);
}

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyrail::kernels {

HWY_EXPORT(run_floats_here);

void run_floats(const Request& request) {
  HWY_DYNAMIC_DISPATCH(run_floats_here)(request);
}

}  // namespace polyrail::kernels
#endif
