// The public functions, and their bodies once per instruction set.
#include "kernels/kernels.hpp"

#include <cstring>

#include "kernels/instruction_sets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/loops-inl.hpp"
#include "kernels/request.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

// A copy is a reduction of one source whose elements may be cut anywhere. At least a vector long.
void copy_past_cache(const void* source, void* target, std::size_t bytes) {
  const Reduction<DataType::kUint8, Combine<ReduceOp::kBitOr>> copying({}, Sources{&source, 1}, {});
  copying.run(static_cast<std::uint8_t*>(target), bytes, Store::kStreamed);
}

const char* set_name() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "src/base/assert.hpp"

namespace polyrail {
namespace {

bool is_arithmetic(ReduceOp op) {
  return op <= ReduceOp::kAvg;
}

}  // namespace

namespace kernels {

HWY_EXPORT(copy_past_cache);
HWY_EXPORT(set_name);

// In this namespace because the macro wants the bare names.
static void copy_past_cache_best(const void* source, void* target, std::size_t bytes) {
  HWY_DYNAMIC_DISPATCH(copy_past_cache)(source, target, bytes);
}
static const char* best_set_name() {
  return HWY_DYNAMIC_DISPATCH(set_name)();
}

namespace {

void run(const Request& request) {
  if (contains(Floats(), request.type)) return run_floats(request);
  if (contains(Halves(), request.type)) return run_halves(request);
  if (contains(Float8s(), request.type)) return run_float8s(request);
  if (contains(SmallIntegers(), request.type)) return run_small_integers(request);
  if (contains(LargeIntegers(), request.type)) return run_large_integers(request);
  run_structs(request);
}

// Fills in what all calls have in common. Precondition: count > 0.
void run_on(Request request, std::span<const void* const> sources, void* out, std::size_t bytes,
            Finish finish) {
  request.sources = sources;
  request.target = static_cast<std::uint8_t*>(out);
  request.bytes = bytes;
  request.divide_by = finish.divide_by;
  // In place the target's lines are read anyway: nothing is saved by passing the cache.
  const bool is_in_place = std::ranges::find(sources, out) != sources.end();
  if (!is_in_place && bytes >= kStreamingBytes) request.store = Store::kStreamed;
  run(request);
}

}  // namespace
}  // namespace kernels

void reduce(DataType type, ReduceOp op, const void* a, const void* b, void* out, std::size_t count,
            Finish finish) {
  const void* const sources[] = {a, b};
  reduce_many(type, op, sources, out, count, finish);
}

void reduce_many(DataType type, ReduceOp op, std::span<const void* const> sources, void* out,
                 std::size_t count, Finish finish) {
  PR_ASSERT(can_reduce(type, op) && op != ReduceOp::kUser);
  PR_ASSERT(!sources.empty());
  PR_ASSERT(finish.divide_by >= 1);
  const kernels::Computation computation = kernels::computation_of(type, op);
  PR_ASSERT(finish.divide_by == 1 || is_arithmetic(computation.op));
  if (count == 0) return;
  const std::size_t bytes = count * size_bytes(type);
  if (sources.size() == 1 && finish.divide_by == 1) {
    if (sources[0] != out) copy(sources[0], out, bytes);
    return;
  }
  kernels::Request request;
  request.type = computation.type;
  request.op = computation.op;
  kernels::run_on(request, sources, out, bytes, finish);
}

void scale(DataType type, double factor, const void* source, void* target, std::size_t count) {
  scaled_sum(type, {&source, 1}, {&factor, 1}, target, count);
}

void scaled_sum(DataType type, std::span<const void* const> sources,
                std::span<const double> factors, void* out, std::size_t count, Finish finish) {
  PR_ASSERT(can_reduce(type, ReduceOp::kPreMulSum));
  PR_ASSERT(!sources.empty() && sources.size() == factors.size());
  PR_ASSERT(finish.divide_by >= 1);
  if (count == 0) return;
  kernels::Request request;
  request.type = kernels::computation_of(type, ReduceOp::kSum).type;
  request.factors = factors;
  kernels::run_on(request, sources, out, count * size_bytes(type), finish);
}

void copy(const void* source, void* target, std::size_t bytes) {
  if (bytes == 0) return;  // the pointers may be null
  if (bytes < kernels::kStreamingBytes) {
    std::memcpy(target, source, bytes);
    return;
  }
  kernels::copy_past_cache_best(source, target, bytes);
}

const char* instruction_set() {
  return kernels::best_set_name();
}

}  // namespace polyrail
#endif
