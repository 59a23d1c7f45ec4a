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

#include "kernels/factors.hpp"
#include "kernels/formats-inl.hpp"
#include "kernels/request.hpp"
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

// Step: how sources become one value (ops.hpp). kGrain: a vector may begin at multiples of so many
// bytes.
template <DataType type, typename Step, std::size_t kGrain = size_bytes(type)>
class Reduction {
 public:
  Reduction(Step step, Sources sources, Divider<Number<type>> by)
      : step_(step), sources_(sources), by_(by) {}

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
    if constexpr (kIsCommon) {
      if (sources_.count > kMostAtOnce) offset = run_in_groups(target, offset, bytes, how);
      if (sources_.count == 2) {
        // Once more with a count and addresses that the compiler knows to stay: 5 to 10 % faster.
        const void* const two[] = {sources_.arrays[0], sources_.arrays[1]};
        run_at_once({two, 2}, target, offset, bytes, how);
      } else {
        run_at_once(sources_, target, offset, bytes, how);
      }
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
  static constexpr std::size_t kStep = F::kBytes;
  // Out of the cache, up to so many arrays are read at full speed at once; 24 take twice the time.
  static constexpr std::size_t kMostAtOnce = 16;
  // The others do without what costs most of the compile time.
  static constexpr bool kIsCommon = contains(Floats(), type) || contains(Halves(), type);

  struct One {
    static constexpr std::size_t kBytes = kStep;
    Value v;

    static HWY_INLINE One load(Step step, const std::uint8_t* source) {
      return {F::first(step, F::load(source))};
    }
    HWY_INLINE void add(Step step, const std::uint8_t* source, std::size_t i) {
      v = F::next(step, v, F::load(source), i);
    }
    HWY_INLINE void finish(const Divider<Number<type>>& by) { v = F::divide(v, by); }
    template <Store how>
    HWY_INLINE void store(std::uint8_t* target) const {
      F::store(how, v, target);
    }
  };
  template <typename Half>
  struct Twice {
    static constexpr std::size_t kBytes = 2 * Half::kBytes;
    Half a, b;

    static HWY_INLINE Twice load(Step step, const std::uint8_t* source) {
      return {Half::load(step, source), Half::load(step, source + Half::kBytes)};
    }
    HWY_INLINE void add(Step step, const std::uint8_t* source, std::size_t i) {
      a.add(step, source, i);
      b.add(step, source + Half::kBytes, i);
    }
    HWY_INLINE void finish(const Divider<Number<type>>& by) {
      a.finish(by);
      b.finish(by);
    }
    template <Store how>
    HWY_INLINE void store(std::uint8_t* target) const {
      a.template store<how>(target);
      b.template store<how>(target + Half::kBytes);
    }
  };
  // Four vectors at a time: their latencies overlap, and a source's address is fetched once for
  // all. A value of fp8 is four by itself.
  using Batch = std::conditional_t<sizeof(Value) == 4 * kStep, One, Twice<Twice<One>>>;

  // Combines with the sources from `begin` to `end`.
  static HWY_INLINE void add(Batch& batch, Step step, Sources sources, std::size_t begin,
                             std::size_t end, std::size_t offset) {
    for (std::size_t i = begin; i < end; ++i) batch.add(step, sources[i] + offset, i);
  }
  static HWY_INLINE void finish(Batch& batch, const Divider<Number<type>>& by) {
    if (by.way != Divider<Number<type>>::Way::kNothing) batch.finish(by);
  }
  static HWY_INLINE void store(const Batch& batch, Store how, std::uint8_t* target) {
    if (how == Store::kStreamed) {
      batch.template store<Store::kStreamed>(target);
    } else {
      batch.template store<Store::kCached>(target);
    }
  }

  // One vector. Not inlined: it is off the hot path, and there are many instances of this class.
  HWY_NOINLINE Value at(std::size_t offset) const {
    Value v = F::first(step_, F::load(sources_[0] + offset));
    for (std::size_t i = 1; i < sources_.count; ++i) {
      v = F::next(step_, v, F::load(sources_[i] + offset), i);
    }
    return F::divide(v, by_);
  }

  // All whole vectors from `offset`, every one through all sources.
  HWY_INLINE void run_at_once(Sources sources, std::uint8_t* target, std::size_t offset,
                              std::size_t bytes, Store how) const {
    const Divider<Number<type>> by = by_;  // copies: no store through `target` changes them
    const Step step = step_;
    for (; offset + Batch::kBytes <= bytes; offset += Batch::kBytes) {
      Batch batch = Batch::load(step, sources[0] + offset);
      add(batch, step, sources, 1, sources.count, offset);
      finish(batch, by);
      store(batch, how, target + offset);
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
    constexpr std::size_t kBatches = 64;
    constexpr std::size_t kBlockBytes = kBatches * Batch::kBytes;
    const Sources sources = sources_;
    const Divider<Number<type>> by = by_;
    const Step step = step_;
    Batch block[kBatches];
    for (; offset + kBlockBytes <= bytes; offset += kBlockBytes) {
      for (std::size_t i = 0; i < kBatches; ++i) {
        block[i] = Batch::load(step, sources[0] + offset + i * Batch::kBytes);
      }
      for (std::size_t begin = 1; begin < sources.count; begin += kGroup) {
        const std::size_t end = std::min(begin + kGroup, sources.count);
        for (std::size_t i = 0; i < kBatches; ++i) {
          Batch batch = block[i];
          add(batch, step, sources, begin, end, offset + i * Batch::kBytes);
          block[i] = batch;
        }
      }
      for (std::size_t i = 0; i < kBatches; ++i) {
        finish(block[i], by);
        store(block[i], how, target + offset + i * Batch::kBytes);
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
        Element value = step_.template first<OneLane, Element>(element_at(0, at));
        for (std::size_t i = 1; i < sources_.count; ++i) {
          value = step_.template next<OneLane, Element>(value, element_at(i, at), i);
        }
        value = divided<OneLane>(value, by_);
        std::memcpy(target + at, &value, sizeof value);
      }
    } else {
      HWY_ALIGN std::uint8_t padded[2][kStep] = {};  // the next is filled while one is in use
      std::memcpy(padded[0], sources_[0], bytes);
      Value v = F::first(step_, F::load(padded[0]));
      for (std::size_t i = 1; i < sources_.count; ++i) {
        std::memcpy(padded[i % 2], sources_[i], bytes);
        v = F::next(step_, v, F::load(padded[i % 2]), i);
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

  Step step_;
  Sources sources_;
  Divider<Number<type>> by_;
};

// Runs a request whose type is one of the family's.
template <typename Types>
void run_family(Types types, const Request& request) {
  const Sources sources{request.sources.data(), request.sources.size()};
  if (request.factors.empty()) {
    with_constants(types, request.type, request.op, [&](auto type, auto op) HWY_ATTR {
      const Reduction<type, Combine<op>> reduction({}, sources,
                                                   make_divider<Number<type>>(request.divide_by));
      reduction.run(request.target, request.bytes, request.store);
    });
  } else {
    with_type(types, request.type, [&](auto type) HWY_ATTR {
      const Factors<Number<type>> factors(request.factors);
      const Reduction<type, AddScaled<Number<type>>> reduction(
          {factors.data()}, sources, make_divider<Number<type>>(request.divide_by));
      reduction.run(request.target, request.bytes, request.store);
    });
  }
}

}  // namespace polyrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
