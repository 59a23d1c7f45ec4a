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

void run(const Request& request) {
  const Sources sources{request.sources.data(), request.sources.size()};
  with_constants(request.type, request.op, [&](auto type, auto op) HWY_ATTR {
    const Reduction<type, op> reduction(sources, make_divider<Number<type>>(request.divide_by));
    reduction.run(request.target, request.bytes, request.store);
  });
}

// A copy is a reduction of one source whose elements may be cut anywhere. At least a vector long.
void copy_past_cache(const void* source, void* target, std::size_t bytes) {
  const Reduction<DataType::kInt32, ReduceOp::kSum, 1> copying(Sources{&source, 1}, {});
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
namespace kernels {

HWY_EXPORT(run);
HWY_EXPORT(copy_past_cache);
HWY_EXPORT(set_name);

// In this namespace because the macro wants the bare names.
static void run_best(const Request& request) {
  HWY_DYNAMIC_DISPATCH(run)(request);
}
static void copy_past_cache_best(const void* source, void* target, std::size_t bytes) {
  HWY_DYNAMIC_DISPATCH(copy_past_cache)(source, target, bytes);
}
static const char* best_set_name() {
  return HWY_DYNAMIC_DISPATCH(set_name)();
}

}  // namespace kernels

void reduce(DataType type, ReduceOp op, const void* a, const void* b, void* out, std::size_t count,
            Finish finish) {
  const void* const sources[] = {a, b};
  reduce_many(type, op, sources, out, count, finish);
}

void reduce_many(DataType type, ReduceOp op, std::span<const void* const> sources, void* out,
                 std::size_t count, Finish finish) {
  PR_ASSERT(is_valid(type) && is_valid(op));
  PR_ASSERT(!sources.empty());
  PR_ASSERT(finish.divide_by >= 1);
  if (count == 0) return;
  kernels::Request request;
  request.type = type;
  request.op = op;
  request.sources = sources;
  request.target = static_cast<std::uint8_t*>(out);
  request.bytes = count * size_bytes(type);
  request.divide_by = finish.divide_by;
  const bool is_in_place = std::ranges::find(sources, out) != sources.end();
  if (sources.size() == 1 && finish.divide_by == 1) {
    if (!is_in_place) copy(sources[0], out, request.bytes);
    return;
  }
  // In place the target's lines are read anyway: nothing is saved by passing the cache.
  if (!is_in_place && request.bytes >= kernels::kStreamingBytes) {
    request.store = kernels::Store::kStreamed;
  }
  kernels::run_best(request);
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
