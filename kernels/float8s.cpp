// Reductions of fp8, once per instruction set.
#include "kernels/instruction_sets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/float8s.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/loops-inl.hpp"
#include "kernels/request.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

void run_float8s_here(const Request& request) {
  run_family(Float8s(), request);
}

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyrail::kernels {

HWY_EXPORT(run_float8s_here);

void run_float8s(const Request& request) {
  HWY_DYNAMIC_DISPATCH(run_float8s_here)(request);
}

}  // namespace polyrail::kernels
#endif
