// Element types, reduction operators and collectives: the words every other part is written in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace polyrail {

// Values equal those of NCCL's enumeration, so that a binary shell over it needs no table.
enum class DataType : std::uint8_t {
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};

// kAvg is the sum divided by the number of ranks, rounded towards zero for integers.
enum class ReduceOp : std::uint8_t { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

enum class Collective : std::uint8_t { kAllReduce = 0 };

inline constexpr DataType kAllDataTypes[] = {DataType::kInt32,   DataType::kInt64,
                                             DataType::kFloat16, DataType::kFloat32,
                                             DataType::kFloat64, DataType::kBfloat16};
inline constexpr ReduceOp kAllReduceOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax,
                                             ReduceOp::kMin, ReduceOp::kAvg};

// Size of one element in bytes; 0 for a value outside the enumeration.
constexpr std::size_t size_bytes(DataType type) {
  switch (type) {
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return 2;
    case DataType::kInt32:
    case DataType::kFloat32:
      return 4;
    case DataType::kInt64:
    case DataType::kFloat64:
      return 8;
  }
  return 0;
}

constexpr bool is_valid(DataType type) {
  return size_bytes(type) != 0;
}
constexpr bool is_valid(ReduceOp op) {
  return op <= ReduceOp::kAvg;
}

// Short names as printed by the perf tools: "float", "bfloat16", "sum".
std::string_view name(DataType type);
std::string_view name(ReduceOp op);
std::string_view name(Collective collective);
std::optional<DataType> parse_data_type(std::string_view text);
std::optional<ReduceOp> parse_reduce_op(std::string_view text);
std::optional<Collective> parse_collective(std::string_view text);

}  // namespace polyrail
