// Buffers, inputs with exact results, and the check of what came out.
#pragma once

#include <cstdint>
#include <vector>

#include <polyrail/types.hpp>

namespace polyrail::perf {

// Memory for count elements, from mem_alloc if `is_shared`, shifted by `unalign` elements.
class Buffer {
 public:
  Buffer(std::uint64_t count, DataType type, bool is_shared, std::uint64_t unalign);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data() const { return data_; }

 private:
  void* memory_ = nullptr;
  void* data_ = nullptr;
  bool is_shared_ = false;
};

// Fills in rank's input. Values are small, so that every result is exact in every type.
// Precondition: can_reduce(type, op); kPreMulSum, kWeightedAvg and kUser count as kSum.
void fill_input(void* data, std::uint64_t count, DataType type, ReduceOp op, int rank,
                int rank_count, std::uint64_t seed);
// Number of elements of an all-reduce's output that are wrong.
std::uint64_t count_wrong(const void* data, std::uint64_t count, DataType type, ReduceOp op,
                          int rank_count, std::uint64_t seed);

}  // namespace polyrail::perf
