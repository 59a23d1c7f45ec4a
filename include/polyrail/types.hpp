// Element types, reduction operators and collectives: the words every other part is written in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace polyrail {

// Values below 32 equal those of NCCL's enumeration, so that a binary shell over it needs no table.
enum class DataType : std::uint8_t {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8E4M3 = 10,  // OCP FP8: no infinity, largest 448; conversions saturate
  kFloat8E5M2 = 11,  // largest 57344; conversions saturate
  kInt16 = 32,
  kUint16 = 33,
  kBool = 34,        // one byte: 0 or 1
  kComplex64 = 35,   // two fp32: real, imaginary
  kComplex128 = 36,  // two fp64
  kInt4x2 = 37,      // two packed 4-bit integers in one byte: moved, not reduced
  // A value and where it came from, for kMaxLoc and kMinLoc.
  kFloat32Index = 40,  // {float value; int32_t index}
  kFloat64Index = 41,  // {double value; int64_t index}
  kInt32Index = 42,    // {int32_t value; int32_t index}
  kInt64Index = 43,    // {int64_t value; int64_t index}
};

enum class ReduceOp : std::uint8_t {
  kSum = 0,
  kProd = 1,
  kMax = 2,
  kMin = 3,
  kAvg = 4,  // the sum divided by the number of ranks, rounded towards zero for integers
  kBitAnd = 5,
  kBitOr = 6,
  kBitXor = 7,
  kLogicalAnd = 8,  // of elements not equal to zero; the result is 0 or 1
  kLogicalOr = 9,
  kLogicalXor = 10,
  kMaxLoc = 11,  // of pairs: the larger value, of equal ones that with the smaller index
  kMinLoc = 12,
  kPreMulSum = 13,    // the sum of each rank's input times a factor of its own (see Reduction)
  kWeightedAvg = 14,  // the same, divided by the sum of the factors
  kUser = 15,         // a function of the caller's
};

enum class Collective : std::uint8_t {
  kAllReduce = 0,
  kReduce = 1,
  kBroadcast = 2,
  kReduceScatter = 3,
  kAllGather = 4,
  kAllToAll = 5,
  kGather = 6,
  kScatter = 7,
  kBarrier = 8,
  kScan = 9,
  kExclusiveScan = 10,
};

inline constexpr DataType kAllDataTypes[] = {
    DataType::kInt8,       DataType::kUint8,     DataType::kInt32,        DataType::kUint32,
    DataType::kInt64,      DataType::kUint64,    DataType::kFloat16,      DataType::kFloat32,
    DataType::kFloat64,    DataType::kBfloat16,  DataType::kFloat8E4M3,   DataType::kFloat8E5M2,
    DataType::kInt16,      DataType::kUint16,    DataType::kBool,         DataType::kComplex64,
    DataType::kComplex128, DataType::kInt4x2,    DataType::kFloat32Index, DataType::kFloat64Index,
    DataType::kInt32Index, DataType::kInt64Index};
inline constexpr ReduceOp kAllReduceOps[] = {
    ReduceOp::kSum,        ReduceOp::kProd,      ReduceOp::kMax,         ReduceOp::kMin,
    ReduceOp::kAvg,        ReduceOp::kBitAnd,    ReduceOp::kBitOr,       ReduceOp::kBitXor,
    ReduceOp::kLogicalAnd, ReduceOp::kLogicalOr, ReduceOp::kLogicalXor,  ReduceOp::kMaxLoc,
    ReduceOp::kMinLoc,     ReduceOp::kPreMulSum, ReduceOp::kWeightedAvg, ReduceOp::kUser};

// Size of one element in bytes; 0 for a value outside the enumeration.
constexpr std::size_t size_bytes(DataType type) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kBool:
    case DataType::kFloat8E4M3:
    case DataType::kFloat8E5M2:
    case DataType::kInt4x2:
      return 1;
    case DataType::kInt16:
    case DataType::kUint16:
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return 2;
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kFloat32:
      return 4;
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kFloat64:
    case DataType::kComplex64:
    case DataType::kFloat32Index:
    case DataType::kInt32Index:
      return 8;
    case DataType::kComplex128:
    case DataType::kFloat64Index:
    case DataType::kInt64Index:
      return 16;
  }
  return 0;
}

constexpr bool is_valid(DataType type) {
  return size_bytes(type) != 0;
}
constexpr bool is_valid(ReduceOp op) {
  return op <= ReduceOp::kUser;
}
constexpr bool is_valid(Collective collective) {
  return collective <= Collective::kExclusiveScan;
}

constexpr bool is_complex(DataType type) {
  return type == DataType::kComplex64 || type == DataType::kComplex128;
}
// Pairs of a value and an index.
constexpr bool is_indexed(DataType type) {
  return type >= DataType::kFloat32Index && type <= DataType::kInt64Index;
}
// Computed as floating-point numbers, complex ones not counted.
constexpr bool is_floating_point(DataType type) {
  return (type >= DataType::kFloat16 && type <= DataType::kFloat8E5M2);
}
// Whether elements of the type can be combined by the operator. Sums and products of bool are "or"
// and "and".
constexpr bool can_reduce(DataType type, ReduceOp op) {
  if (!is_valid(type) || !is_valid(op) || type == DataType::kInt4x2) return false;
  if (op == ReduceOp::kUser) return true;
  const bool has_location = op == ReduceOp::kMaxLoc || op == ReduceOp::kMinLoc;
  if (is_indexed(type) || has_location) return is_indexed(type) && has_location;
  const bool is_scaled = op == ReduceOp::kPreMulSum || op == ReduceOp::kWeightedAvg;
  if (is_complex(type)) {
    return op == ReduceOp::kSum || op == ReduceOp::kProd || op == ReduceOp::kAvg || is_scaled;
  }
  if (type == DataType::kBool && (is_scaled || op == ReduceOp::kAvg)) return false;
  if (op == ReduceOp::kWeightedAvg) return is_floating_point(type);
  const bool is_bitwise = op >= ReduceOp::kBitAnd && op <= ReduceOp::kLogicalXor;
  return !is_bitwise || !is_floating_point(type);
}

// Short names as printed by the perf tools: "float", "bfloat16", "sum".
std::string_view name(DataType type);
std::string_view name(ReduceOp op);
std::string_view name(Collective collective);
std::optional<DataType> parse_data_type(std::string_view text);
std::optional<ReduceOp> parse_reduce_op(std::string_view text);
std::optional<Collective> parse_collective(std::string_view text);

}  // namespace polyrail
