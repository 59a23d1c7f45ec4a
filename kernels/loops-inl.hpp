// The loop under every reduction: any number of sources into one target, in one pass. Compiled
// again for each instruction set (see ops.hpp).
#if defined(PR_KERNELS_LOOPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PR_KERNELS_LOOPS_INL_HPP
#undef PR_KERNELS_LOOPS_INL_HPP
#else
#define PR_KERNELS_LOOPS_INL_HPP
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/scalar-inl.hpp"
#include "kernels/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

// kCount sources, or, if that is 0, a number known only at run time.
template <std::size_t kCount>
class Sources {
 public:
  explicit Sources(const void* const* sources, std::size_t) {
    for (std::size_t i = 0; i < kCount; ++i) at_[i] = static_cast<const std::uint8_t*>(sources[i]);
  }
  HWY_INLINE std::size_t count() const { return kCount; }
  HWY_INLINE const std::uint8_t* operator[](std::size_t i) const { return at_[i]; }

 private:
  const std::uint8_t* at_[kCount];
};

template <>
class Sources<0> {
 public:
  explicit Sources(const void* const* sources, std::size_t count) : at_(sources), count_(count) {}
  HWY_INLINE std::size_t count() const { return count_; }
  HWY_INLINE const std::uint8_t* operator[](std::size_t i) const {
    return static_cast<const std::uint8_t*>(at_[i]);
  }

 private:
  const void* const* at_;
  std::size_t count_;
};

// kGrain: a vector may begin at multiples of so many bytes.
template <DataType type, ReduceOp op, std::size_t kCount, std::size_t kGrain = size_bytes(type)>
class Reduction {
 public:
  Reduction(Sources<kCount> sources, Divider<Number<type>> by) : sources_(sources), by_(by) {}

  void run(std::uint8_t* target, std::size_t bytes, Store how) const {
    if (bytes < kStep) return run_short(target, bytes);
    // The vectors at both ends overlap those of the loop; they are computed before anything is
    // written, because the target may be one of the sources, and written last.
    const Value first = at(0);
    const Value last = at(bytes - kStep);
    std::size_t offset = -reinterpret_cast<std::uintptr_t>(target) % kStep;
    if (offset % kGrain != 0) {  // elements lie askew: no whole number of them aligns it
      offset = 0;
      how = Store::kCached;
    }
    if (how == Store::kStreamed) {
      offset = run_loop<Store::kStreamed>(target, offset, bytes);
      hwy::FlushStream();
    } else {
      offset = run_loop<Store::kCached>(target, offset, bytes);
    }
    F::store(Store::kCached, first, target);
    F::store(Store::kCached, last, target + bytes - kStep);
  }

 private:
  using F = Format<type>;
  using Value = typename F::Value;
  using Op = Operator<op>;
  static constexpr std::size_t kStep = F::kBytes;

  HWY_INLINE Value at(std::size_t offset) const {
    Value v = F::load(sources_[0] + offset);
    for (std::size_t i = 1; i < sources_.count(); ++i) {
      v = F::template combine<Op>(v, F::load(sources_[i] + offset));
    }
    return F::divide(v, by_);
  }

  // Whole vectors from `offset`, four at a time so that their latencies overlap and a source's
  // address is fetched once for four.
  template <Store how>
  HWY_INLINE std::size_t run_loop(std::uint8_t* target, std::size_t offset,
                                  std::size_t bytes) const {
    for (; offset + 4 * kStep <= bytes; offset += 4 * kStep) {
      const std::uint8_t* source = sources_[0] + offset;
      Value v0 = F::load(source);
      Value v1 = F::load(source + kStep);
      Value v2 = F::load(source + 2 * kStep);
      Value v3 = F::load(source + 3 * kStep);
      for (std::size_t i = 1; i < sources_.count(); ++i) {
        source = sources_[i] + offset;
        v0 = F::template combine<Op>(v0, F::load(source));
        v1 = F::template combine<Op>(v1, F::load(source + kStep));
        v2 = F::template combine<Op>(v2, F::load(source + 2 * kStep));
        v3 = F::template combine<Op>(v3, F::load(source + 3 * kStep));
      }
      F::store(how, F::divide(v0, by_), target + offset);
      F::store(how, F::divide(v1, by_), target + offset + kStep);
      F::store(how, F::divide(v2, by_), target + offset + 2 * kStep);
      F::store(how, F::divide(v3, by_), target + offset + 3 * kStep);
    }
    for (; offset + kStep <= bytes; offset += kStep) F::store(how, at(offset), target + offset);
    return offset;
  }

  // Less than a vector: through a padded copy, so that nothing beyond the ends is touched.
  void run_short(std::uint8_t* target, std::size_t bytes) const {
    HWY_ALIGN std::uint8_t padded[kStep] = {};
    std::memcpy(padded, sources_[0], bytes);
    Value v = F::load(padded);
    for (std::size_t i = 1; i < sources_.count(); ++i) {
      std::memcpy(padded, sources_[i], bytes);
      v = F::template combine<Op>(v, F::load(padded));
    }
    F::store(Store::kCached, F::divide(v, by_), padded);
    std::memcpy(target, padded, bytes);
  }

  Sources<kCount> sources_;
  Divider<Number<type>> by_;
};

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
