// Buffers, inputs with exact results, and the check of what came out.
#pragma once

#include <cstdint>
#include <vector>

#include <polyrail/call.hpp>

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

// Fills in elements `first` and on of a rank's input. Values are small, so that every result is
// exact in every type. Precondition: can_reduce(type, op).
void fill_input(void* data, std::uint64_t count, DataType type, ReduceOp op, int rank,
                int rank_count, std::uint64_t seed, std::uint64_t first = 0);
// Number of elements that are not the reduction of the inputs of ranks 0 .. end_rank - 1, or of all
// if that is 0.
std::uint64_t count_wrong(const void* data, std::uint64_t count, DataType type, ReduceOp op,
                          int rank_count, std::uint64_t seed, std::uint64_t first = 0,
                          int end_rank = 0);
// The operator with what a rank gives besides: the factors that those results are made with; for
// kUser "exclusive or" of the bytes.
Reduction reduction_of(ReduceOp op, int rank, int rank_count);

// For data that only moves: bytes `first_byte` and on of an owner's stream. No two places of any
// streams look alike.
void fill_stream(void* data, std::uint64_t bytes, int owner, std::uint64_t seed,
                 std::uint64_t first_byte);
std::uint64_t count_wrong_stream(const void* data, std::uint64_t count, DataType type, int owner,
                                 std::uint64_t seed, std::uint64_t first_byte);

}  // namespace polyrail::perf
