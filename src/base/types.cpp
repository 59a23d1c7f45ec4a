#include <polyrail/types.hpp>

namespace polyrail {
namespace {

template <typename T>
struct Named {
  T value;
  std::string_view text;
};

// The first name of a value is the one printed; the others are understood too.
constexpr Named<DataType> kDataTypeNames[] = {
    {DataType::kInt8, "int8"},
    {DataType::kUint8, "uint8"},
    {DataType::kInt32, "int32"},
    {DataType::kUint32, "uint32"},
    {DataType::kInt64, "int64"},
    {DataType::kUint64, "uint64"},
    {DataType::kFloat16, "half"},
    {DataType::kFloat32, "float"},
    {DataType::kFloat64, "double"},
    {DataType::kBfloat16, "bfloat16"},
    {DataType::kFloat8E4M3, "fp8_e4m3"},
    {DataType::kFloat8E5M2, "fp8_e5m2"},
    {DataType::kInt16, "int16"},
    {DataType::kUint16, "uint16"},
    {DataType::kBool, "bool"},
    {DataType::kComplex64, "complex64"},
    {DataType::kComplex128, "complex128"},
    {DataType::kInt4x2, "int4x2"},
    {DataType::kFloat32Index, "float_index"},
    {DataType::kFloat64Index, "double_index"},
    {DataType::kInt32Index, "int32_index"},
    {DataType::kInt64Index, "int64_index"},
    // What else they are called.
    {DataType::kInt8, "char"},
    {DataType::kUint8, "byte"},
    {DataType::kInt32, "int"},
    {DataType::kFloat16, "float16"},
    {DataType::kFloat16, "fp16"},
    {DataType::kFloat32, "float32"},
    {DataType::kFloat32, "fp32"},
    {DataType::kFloat64, "float64"},
    {DataType::kFloat64, "fp64"},
    {DataType::kBfloat16, "bf16"},
    {DataType::kFloat8E4M3, "f8e4m3"},
    {DataType::kFloat8E5M2, "f8e5m2"},
};
constexpr Named<ReduceOp> kReduceOpNames[] = {
    {ReduceOp::kSum, "sum"},
    {ReduceOp::kProd, "prod"},
    {ReduceOp::kMax, "max"},
    {ReduceOp::kMin, "min"},
    {ReduceOp::kAvg, "avg"},
    {ReduceOp::kBitAnd, "bit_and"},
    {ReduceOp::kBitOr, "bit_or"},
    {ReduceOp::kBitXor, "bit_xor"},
    {ReduceOp::kLogicalAnd, "logical_and"},
    {ReduceOp::kLogicalOr, "logical_or"},
    {ReduceOp::kLogicalXor, "logical_xor"},
    {ReduceOp::kMaxLoc, "max_loc"},
    {ReduceOp::kMinLoc, "min_loc"},
    {ReduceOp::kPreMulSum, "pre_mul_sum"},
    {ReduceOp::kWeightedAvg, "weighted_avg"},
    {ReduceOp::kUser, "user"},
    {ReduceOp::kPreMulSum, "mulsum"},
};
constexpr Named<Collective> kCollectiveNames[] = {
    {Collective::kAllReduce, "all_reduce"},
    {Collective::kReduce, "reduce"},
    {Collective::kBroadcast, "broadcast"},
    {Collective::kReduceScatter, "reduce_scatter"},
    {Collective::kAllGather, "all_gather"},
    {Collective::kAllToAll, "all_to_all"},
    {Collective::kGather, "gather"},
    {Collective::kScatter, "scatter"},
    {Collective::kBarrier, "barrier"},
    {Collective::kScan, "scan"},
    {Collective::kExclusiveScan, "exclusive_scan"},
};

template <typename T, std::size_t N>
std::string_view name_in(const Named<T> (&table)[N], T value) {
  for (const auto& row : table) {
    if (row.value == value) return row.text;
  }
  return "unknown";
}

template <typename T, std::size_t N>
std::optional<T> find_in(const Named<T> (&table)[N], std::string_view text) {
  for (const auto& row : table) {
    if (row.text == text) return row.value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(DataType type) {
  return name_in(kDataTypeNames, type);
}
std::string_view name(ReduceOp op) {
  return name_in(kReduceOpNames, op);
}
std::string_view name(Collective collective) {
  return name_in(kCollectiveNames, collective);
}
std::optional<DataType> parse_data_type(std::string_view text) {
  return find_in(kDataTypeNames, text);
}
std::optional<ReduceOp> parse_reduce_op(std::string_view text) {
  return find_in(kReduceOpNames, text);
}
std::optional<Collective> parse_collective(std::string_view text) {
  return find_in(kCollectiveNames, text);
}

}  // namespace polyrail
