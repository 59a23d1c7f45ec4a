// Layout: which bytes of the vector lie where in each rank's input and output, and whose they are.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/plan.hpp"
#include "src/plan/range.hpp"

namespace polyrail {

// A stretch of a rank's input or output.
struct Portion {
  std::uint64_t offset_bytes = 0;  // in the buffer
  std::uint64_t bytes = 0;
  std::uint64_t origin_bytes = 0;  // in the vector
  // Inputs: the rank itself. Outputs: the ranks first .. end - 1 whose inputs it is made of.
  int first = 0;
  int end = 0;
};

// In place: whether an offset means the same place in input and output.
constexpr bool has_equal_bases(Collective collective) {
  return !has_parts(collective) || collective == Collective::kAllToAll;
}

class Layout final {
 public:
  // Borrows the spec. Precondition: its counts, if there are any, are as many as they should be,
  // and nothing overflows.
  explicit Layout(const CollectiveSpec& spec) : spec_(spec) {}

  std::uint64_t vector_bytes() const;
  // Of reduce_scatter, all_gather, gather and scatter: a rank's part, in the vector.
  Range part(int rank) const;
  // Of all_to_all: what `from` sends to `to`, in the input of `from` and in the output of `to`.
  Range sent(int from, int to) const;
  Range received(int from, int to) const;

  std::uint64_t input_bytes(int rank) const;
  std::uint64_t output_bytes(int rank) const;
  // Allocates, unlike the others.
  std::vector<Portion> inputs(int rank) const;
  std::vector<Portion> outputs(int rank) const;

  // In place input and output of a rank are one memory, the longer of the two buffers; the shorter
  // begins so far within it.
  std::uint64_t input_base(int rank) const;
  std::uint64_t output_base(int rank) const;
  // Where a slice lies: memories are different if and only if they share no bytes. Bytes are those
  // of elements of the call's type, also where they are held in the wire type.
  struct Place {
    Space memory = Space::kInput;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool overlaps(const Place& other) const {
      return memory == other.memory && begin < other.end && other.begin < end;
    }
  };
  Place place(int rank, const Slice& slice) const;

 private:
  std::uint64_t element() const { return size_bytes(spec_.type); }
  std::uint64_t pair_bytes(int from, int to) const;
  bool is_root(int rank) const { return rank == spec_.root; }

  const CollectiveSpec& spec_;
};

}  // namespace polyrail
