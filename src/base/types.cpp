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
    {DataType::kInt32, "int32"},    {DataType::kInt64, "int64"},
    {DataType::kFloat16, "half"},   {DataType::kFloat32, "float"},
    {DataType::kFloat64, "double"}, {DataType::kBfloat16, "bfloat16"},
    {DataType::kInt32, "int"},      {DataType::kFloat16, "float16"},
    {DataType::kFloat16, "fp16"},   {DataType::kFloat32, "float32"},
    {DataType::kFloat32, "fp32"},   {DataType::kFloat64, "float64"},
    {DataType::kFloat64, "fp64"},   {DataType::kBfloat16, "bf16"},
};
constexpr Named<ReduceOp> kReduceOpNames[] = {{ReduceOp::kSum, "sum"},
                                              {ReduceOp::kProd, "prod"},
                                              {ReduceOp::kMax, "max"},
                                              {ReduceOp::kMin, "min"},
                                              {ReduceOp::kAvg, "avg"}};
constexpr Named<Collective> kCollectiveNames[] = {{Collective::kAllReduce, "all_reduce"}};

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
