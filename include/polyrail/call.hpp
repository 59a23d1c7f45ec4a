// Call: one collective with its arguments, as a value; Reduction: how elements are combined.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <span>

#include <polyrail/types.hpp>

namespace polyrail {

// An operator of the caller's, for kUser.
struct UserOp {
  // out[i] = a[i] op b[i] for count elements; out may equal a or b. Associative. Called by the
  // thread that moves the operation on; must not call back into the communicator. The addresses may
  // have any alignment.
  void (*combine)(const void* a, const void* b, void* out, std::uint64_t count, DataType type,
                  void* context) = nullptr;
  void* context = nullptr;
  // Whether operands may be taken in any order; if not, they are taken in rank order.
  bool is_commutative = false;
  // One element e with e op x = x, or null. The output of rank 0 in an exclusive scan.
  const void* identity = nullptr;
};

// An operator and what some of them need besides. A ReduceOp is one.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  // kPreMulSum, kWeightedAvg: what this rank's input counts. Of integers it is rounded to a whole
  // number. Inputs are multiplied into memory of the communicator, as long as the input.
  double factor = 1;
  const UserOp* user = nullptr;  // kUser: borrowed until the operation is done

  Reduction() = default;
  Reduction(ReduceOp one) : op(one) {}  // NOLINT: conversion is the purpose
  Reduction(const UserOp& user_op) : op(ReduceOp::kUser), user(&user_op) {}  // NOLINT
  static Reduction pre_mul_sum(double factor) { return with_factor(ReduceOp::kPreMulSum, factor); }
  // sum(w_i x_i) / sum(w_i): the weights of the ranks need not sum up to one; they are summed by
  // one more all_reduce. Floating point. If all weights are zero the result is not a number.
  static Reduction weighted_avg(double weight) {
    return with_factor(ReduceOp::kWeightedAvg, weight);
  }

 private:
  static Reduction with_factor(ReduceOp op, double factor) {
    Reduction reduction(op);
    reduction.factor = factor;
    return reduction;
  }
};

// The arguments of a collective. n is the number of ranks; in place means what it does in NCCL:
//
//   collective       input               output              in place
//   all_reduce       count               count               output == input
//   reduce           count               count, at root      output == input, at root
//   broadcast        count, at root      count               output == input, at root
//   reduce_scatter   n parts             own part            output == own part of input
//   all_gather       own part            n parts             input == own part of output
//   all_to_all       n parts, by target  n parts, by source  output == input
//   gather           own part            n parts, at root    input == root's part of output
//   scatter          n parts, at root    own part            output == root's part of input
//   scan             count               count               output == input
//   barrier          -                   -
//
// All ranks are in place or none is in all_reduce; elsewhere each may choose.
//
// Parts follow one another by rank without gaps. Each has `count` elements, or, in the uneven
// forms, what `counts` says. What a rank does not use may be null, as may buffers of no elements.
struct Call {
  Collective collective = Collective::kAllReduce;
  const void* input = nullptr;
  void* output = nullptr;
  std::uint64_t count = 0;  // elements
  DataType type = DataType::kFloat32;
  Reduction reduction;  // of collectives that reduce
  int root = 0;         // of collectives that have one
  // Uneven forms: elements of each rank's part, n of them, the same on all ranks. all_to_all: what
  // this rank sends to each; receive_counts: what it receives from each. gather, scatter: needed at
  // the root; the others may give only `count`, their own.
  bool is_uneven = false;
  std::span<const std::uint64_t> counts;
  std::span<const std::uint64_t> receive_counts;
  // all_reduce of fp32: what travels is rounded to this narrower type; sums are made in fp32.
  std::optional<DataType> wire_type;

  static Call all_reduce(const void* input, void* output, std::uint64_t count, DataType type,
                         const Reduction& reduction) {
    return reducing(Collective::kAllReduce, input, output, count, type, reduction);
  }
  static Call reduce(const void* input, void* output, std::uint64_t count, DataType type,
                     const Reduction& reduction, int root) {
    Call call = reducing(Collective::kReduce, input, output, count, type, reduction);
    call.root = root;
    return call;
  }
  static Call broadcast(const void* input, void* output, std::uint64_t count, DataType type,
                        int root) {
    return moving(Collective::kBroadcast, input, output, count, type, root);
  }
  static Call reduce_scatter(const void* input, void* output, std::uint64_t part_count,
                             DataType type, const Reduction& reduction) {
    return reducing(Collective::kReduceScatter, input, output, part_count, type, reduction);
  }
  static Call reduce_scatter_v(const void* input, void* output,
                               std::span<const std::uint64_t> counts, DataType type,
                               const Reduction& reduction) {
    return uneven(reducing(Collective::kReduceScatter, input, output, 0, type, reduction), counts);
  }
  static Call all_gather(const void* input, void* output, std::uint64_t part_count, DataType type) {
    return moving(Collective::kAllGather, input, output, part_count, type, 0);
  }
  static Call all_gather_v(const void* input, void* output, std::span<const std::uint64_t> counts,
                           DataType type) {
    return uneven(moving(Collective::kAllGather, input, output, 0, type, 0), counts);
  }
  static Call all_to_all(const void* input, void* output, std::uint64_t part_count, DataType type) {
    return moving(Collective::kAllToAll, input, output, part_count, type, 0);
  }
  static Call all_to_all_v(const void* input, std::span<const std::uint64_t> send_counts,
                           void* output, std::span<const std::uint64_t> receive_counts,
                           DataType type) {
    Call call = uneven(moving(Collective::kAllToAll, input, output, 0, type, 0), send_counts);
    call.receive_counts = receive_counts;
    return call;
  }
  static Call gather(const void* input, void* output, std::uint64_t part_count, DataType type,
                     int root) {
    return moving(Collective::kGather, input, output, part_count, type, root);
  }
  // own_count: of this rank; `counts` is needed at the root only.
  static Call gather_v(const void* input, std::uint64_t own_count, void* output,
                       std::span<const std::uint64_t> counts, DataType type, int root) {
    return uneven(moving(Collective::kGather, input, output, own_count, type, root), counts);
  }
  static Call scatter(const void* input, void* output, std::uint64_t part_count, DataType type,
                      int root) {
    return moving(Collective::kScatter, input, output, part_count, type, root);
  }
  static Call scatter_v(const void* input, std::span<const std::uint64_t> counts, void* output,
                        std::uint64_t own_count, DataType type, int root) {
    return uneven(moving(Collective::kScatter, input, output, own_count, type, root), counts);
  }
  // output = the reduction of the inputs of the ranks up to and including this one, in rank order.
  static Call scan(const void* input, void* output, std::uint64_t count, DataType type,
                   const Reduction& reduction) {
    return reducing(Collective::kScan, input, output, count, type, reduction);
  }
  // The same without this rank's own. The output of rank 0 is the identity of a UserOp that has
  // one, else it is left alone.
  static Call exclusive_scan(const void* input, void* output, std::uint64_t count, DataType type,
                             const Reduction& reduction) {
    return reducing(Collective::kExclusiveScan, input, output, count, type, reduction);
  }
  // Done when all ranks have entered it.
  static Call barrier() {
    return moving(Collective::kBarrier, nullptr, nullptr, 0, DataType::kInt8, 0);
  }

 private:
  static Call moving(Collective collective, const void* input, void* output, std::uint64_t count,
                     DataType type, int root) {
    Call call;
    call.collective = collective;
    call.input = input;
    call.output = output;
    call.count = count;
    call.type = type;
    call.root = root;
    return call;
  }
  static Call reducing(Collective collective, const void* input, void* output, std::uint64_t count,
                       DataType type, const Reduction& reduction) {
    Call call = moving(collective, input, output, count, type, 0);
    call.reduction = reduction;
    return call;
  }
  static Call uneven(Call call, std::span<const std::uint64_t> counts) {
    call.is_uneven = true;
    call.counts = counts;
    return call;
  }
};

// The DataType of a C++ type, for the forms over spans.
template <typename T>
struct DataTypeOf;
template <>
struct DataTypeOf<std::int8_t> {
  static constexpr DataType value = DataType::kInt8;
};
template <>
struct DataTypeOf<std::uint8_t> {
  static constexpr DataType value = DataType::kUint8;
};
template <>
struct DataTypeOf<std::int16_t> {
  static constexpr DataType value = DataType::kInt16;
};
template <>
struct DataTypeOf<std::uint16_t> {
  static constexpr DataType value = DataType::kUint16;
};
template <>
struct DataTypeOf<std::int32_t> {
  static constexpr DataType value = DataType::kInt32;
};
template <>
struct DataTypeOf<std::uint32_t> {
  static constexpr DataType value = DataType::kUint32;
};
template <>
struct DataTypeOf<std::int64_t> {
  static constexpr DataType value = DataType::kInt64;
};
template <>
struct DataTypeOf<std::uint64_t> {
  static constexpr DataType value = DataType::kUint64;
};
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::kFloat32;
};
template <>
struct DataTypeOf<double> {
  static constexpr DataType value = DataType::kFloat64;
};
template <>
struct DataTypeOf<std::complex<float>> {
  static constexpr DataType value = DataType::kComplex64;
};
template <>
struct DataTypeOf<std::complex<double>> {
  static constexpr DataType value = DataType::kComplex128;
};
template <>
struct DataTypeOf<bool> {
  static constexpr DataType value = DataType::kBool;
};

}  // namespace polyrail
