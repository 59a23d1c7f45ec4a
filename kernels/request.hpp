// One checked call, as it is handed to the code of the chosen instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <polyrail/types.hpp>

namespace polyrail::kernels {

// How a store treats the cache.
enum class Store : std::uint8_t {
  kCached,
  kStreamed,  // past the cache; the target is aligned to a vector
};

struct Request {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::span<const void* const> sources;
  std::span<const double> factors;  // of the sources, for a scaled sum; none: `op`
  std::uint8_t* target = nullptr;
  std::size_t bytes = 0;
  std::int64_t divide_by = 1;
  Store store = Store::kCached;  // a wish; followed where the target can be aligned
};

// One family of types each (element.hpp); structs.cpp runs element by element, the others choose
// the instruction set.
void run_floats(const Request& request);
void run_halves(const Request& request);
void run_float8s(const Request& request);
void run_small_integers(const Request& request);
void run_large_integers(const Request& request);
void run_structs(const Request& request);

// From this size on a result is written past the cache, unless it is in place. A target that does
// not stay in the cache costs a read of the lines it overwrites; measured with kernel_bench.
inline constexpr std::size_t kStreamingBytes = std::size_t{8} << 20;

}  // namespace polyrail::kernels
