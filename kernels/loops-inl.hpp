// The loop under every reduction: any number of sources into one target, in one pass. Compiled
// again for each instruction set (see ops.hpp).
#if defined(PR_KERNELS_LOOPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PR_KERNELS_LOOPS_INL_HPP
#undef PR_KERNELS_LOOPS_INL_HPP
#else
#define PR_KERNELS_LOOPS_INL_HPP
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/formats-inl.hpp"
#include "kernels/scalar-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyrail::kernels::HWY_NAMESPACE {

// What a reduction reads: `count` arrays.
struct Sources {
  const void* const* arrays;
  std::size_t count;

  HWY_INLINE const std::uint8_t* operator[](std::size_t i) const {
    return static_cast<const std::uint8_t*>(arrays[i]);
  }
};

// kGrain: a vector may begin at multiples of so many bytes.
template <DataType type, ReduceOp op, std::size_t kGrain = size_bytes(type)>
class Reduction {
 public:
  Reduction(Sources sources, Divider<Number<type>> by) : sources_(sources), by_(by) {}

  void run(std::uint8_t* target, std::size_t bytes, Store how) const {
    if (bytes < kStep) return run_short(target, bytes);
    // The vectors at both ends overlap those of the loops; they are computed before anything is
    // written, because the target may be one of the sources, and written last.
    const Value first = at(0);
    const Value last = at(bytes - kStep);
    std::size_t offset = -reinterpret_cast<std::uintptr_t>(target) % kStep;
    if (offset % kGrain != 0) {  // elements lie askew: no whole number of them aligns it
      offset = 0;
      how = Store::kCached;
    }
    if (sources_.count > kMostAtOnce) offset = run_in_groups(target, offset, bytes, how);
    if (sources_.count == 2) {
      // Once more with a count and addresses that the compiler knows to stay: 5 to 10 % faster.
      const void* const two[] = {sources_.arrays[0], sources_.arrays[1]};
      run_at_once({two, 2}, target, offset, bytes, how);
    } else {
      run_at_once(sources_, target, offset, bytes, how);
    }
    if (how == Store::kStreamed) hwy::FlushStream();
    F::store(Store::kCached, first, target);
    F::store(Store::kCached, last, target + bytes - kStep);
  }

 private:
  using F = Format<type>;
  using Value = typename F::Value;
  using Op = Operator<op>;
  static constexpr std::size_t kStep = F::kBytes;
  // Out of the cache, up to so many arrays are read at full speed at once; 24 take twice the time.
  static constexpr std::size_t kMostAtOnce = 16;

  // Four vectors: their latencies overlap, and a source's address is fetched once for all.
  struct Four {
    Value v0, v1, v2, v3;

    static HWY_INLINE Four load(const std::uint8_t* source) {
      return {F::load(source), F::load(source + kStep), F::load(source + 2 * kStep),
              F::load(source + 3 * kStep)};
    }
    // Combines with the sources from `begin` to `end`.
    HWY_INLINE void add(Sources sources, std::size_t begin, std::size_t end, std::size_t offset) {
      for (std::size_t i = begin; i < end; ++i) {
        const Four operand = load(sources[i] + offset);
        v0 = F::template combine<Op>(v0, operand.v0);
        v1 = F::template combine<Op>(v1, operand.v1);
        v2 = F::template combine<Op>(v2, operand.v2);
        v3 = F::template combine<Op>(v3, operand.v3);
      }
    }
    HWY_INLINE void finish(Divider<Number<type>> by) {
      if (by.way == Divider<Number<type>>::Way::kNothing) return;
      v0 = F::divide(v0, by);
      v1 = F::divide(v1, by);
      v2 = F::divide(v2, by);
      v3 = F::divide(v3, by);
    }
    template <Store how>
    HWY_INLINE void store_as(std::uint8_t* target) const {
      F::store(how, v0, target);
      F::store(how, v1, target + kStep);
      F::store(how, v2, target + 2 * kStep);
      F::store(how, v3, target + 3 * kStep);
    }
    HWY_INLINE void store(Store how, std::uint8_t* target) const {
      if (how == Store::kStreamed) {
        store_as<Store::kStreamed>(target);
      } else {
        store_as<Store::kCached>(target);
      }
    }
  };

  // One vector. Not inlined: it is off the hot path, and there are many instances of this class.
  HWY_NOINLINE Value at(std::size_t offset) const {
    Value v = F::load(sources_[0] + offset);
    for (std::size_t i = 1; i < sources_.count; ++i) {
      v = F::template combine<Op>(v, F::load(sources_[i] + offset));
    }
    return F::divide(v, by_);
  }

  // All whole vectors from `offset`, every one through all sources.
  HWY_INLINE void run_at_once(Sources sources, std::uint8_t* target, std::size_t offset,
                              std::size_t bytes, Store how) const {
    const Divider<Number<type>> by = by_;  // a copy: no store through `target` changes it
    for (; offset + 4 * kStep <= bytes; offset += 4 * kStep) {
      Four four = Four::load(sources[0] + offset);
      four.add(sources, 1, sources.count, offset);
      four.finish(by);
      four.store(how, target + offset);
    }
    for (; offset + kStep <= bytes; offset += kStep) {
      F::store(Store::kCached, at(offset), target + offset);
    }
  }

  // Blocks of vectors, each through a group of sources at a time. In between a block is kept as
  // numbers, so that nothing is rounded before the end. Returns where it stopped, less than a block
  // away from the end.
  HWY_NOINLINE std::size_t run_in_groups(std::uint8_t* target, std::size_t offset,
                                         std::size_t bytes, Store how) const {
    constexpr std::size_t kGroup = 8;
    constexpr std::size_t kFours = 64;
    constexpr std::size_t kBlockBytes = kFours * 4 * kStep;
    const Sources sources = sources_;
    const Divider<Number<type>> by = by_;
    Four block[kFours];
    for (; offset + kBlockBytes <= bytes; offset += kBlockBytes) {
      for (std::size_t i = 0; i < kFours; ++i) {
        block[i] = Four::load(sources[0] + offset + i * 4 * kStep);
      }
      for (std::size_t begin = 1; begin < sources.count; begin += kGroup) {
        const std::size_t end = std::min(begin + kGroup, sources.count);
        for (std::size_t i = 0; i < kFours; ++i) {
          Four four = block[i];
          four.add(sources, begin, end, offset + i * 4 * kStep);
          block[i] = four;
        }
      }
      for (std::size_t i = 0; i < kFours; ++i) {
        block[i].finish(by);
        block[i].store(how, target + offset + i * 4 * kStep);
      }
    }
    return offset;
  }

  // Less than a vector, so that nothing beyond the ends may be touched: element by element, or, for
  // types that would have to be converted one by one, through padded copies.
  HWY_NOINLINE void run_short(std::uint8_t* target, std::size_t bytes) const {
    using Element = Stored<type>;
    if constexpr (std::is_same_v<Element, Number<type>>) {
      for (std::size_t at = 0; at < bytes; at += sizeof(Element)) {
        Element value = element_at(0, at);
        for (std::size_t i = 1; i < sources_.count; ++i) {
          value = Op::template apply<OneLane, Element>(value, element_at(i, at));
        }
        value = divided<OneLane>(value, by_);
        std::memcpy(target + at, &value, sizeof value);
      }
    } else {
      HWY_ALIGN std::uint8_t padded[2][kStep] = {};  // the next is filled while one is in use
      std::memcpy(padded[0], sources_[0], bytes);
      Value v = F::load(padded[0]);
      for (std::size_t i = 1; i < sources_.count; ++i) {
        std::memcpy(padded[i % 2], sources_[i], bytes);
        v = F::template combine<Op>(v, F::load(padded[i % 2]));
      }
      F::store(Store::kCached, F::divide(v, by_), padded[0]);
      std::memcpy(target, padded[0], bytes);
    }
  }

  HWY_INLINE Stored<type> element_at(std::size_t source, std::size_t offset) const {
    Stored<type> element;
    std::memcpy(&element, sources_[source] + offset, sizeof element);
    return element;
  }

  Sources sources_;
  Divider<Number<type>> by_;
};

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
