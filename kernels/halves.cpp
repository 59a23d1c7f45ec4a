// Reductions of fp16 and bf16, once per instruction set.
#include "kernels/instruction_sets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/halves.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/loops-inl.hpp"
#include "kernels/request.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

void run_halves_here(const Request& request) {
  run_family(Halves(), request);
}

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyrail::kernels {

HWY_EXPORT(run_halves_here);

void run_halves(const Request& request) {
  HWY_DYNAMIC_DISPATCH(run_halves_here)(request);
}

}  // namespace polyrail::kernels
#endif
