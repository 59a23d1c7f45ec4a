#include "src/capi/operators.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

namespace polyrail::capi {
namespace {

Status unknown(polyrailRedOp_t op) {
  return {StatusCode::kInvalidArgument, "the operator " + std::to_string(static_cast<int>(op)) +
                                            " is unknown to this communicator"};
}

template <typename T>
T load(const void* scalar) {
  T value;
  std::memcpy(&value, scalar, sizeof value);
  return value;
}

// A small binary float: sign, exponent, mantissa.
double small_float(std::uint32_t bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const std::uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const bool is_negative = (bits >> (exponent_bits + mantissa_bits) & 1) != 0;
  const bool is_top = exponent == (1 << exponent_bits) - 1;
  double value = 0;
  if (is_top && has_infinity) {
    value = mantissa == 0 ? HUGE_VAL : std::nan("");
  } else if (is_top && mantissa == (1u << mantissa_bits) - 1) {
    value = std::nan("");  // E4M3 has no infinity and one NaN
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1u << mantissa_bits), exponent - bias - mantissa_bits);
  }
  return is_negative ? -value : value;
}

template <typename Integer>
Result<double> exactly(Integer value) {
  constexpr double kMost = 9007199254740992.0;  // 2^53
  const auto number = static_cast<double>(value);
  if (std::abs(number) <= kMost) return number;
  return Status(StatusCode::kInvalidArgument,
                "the factor " + std::to_string(value) + " is beyond 2^53");
}

}  // namespace

polyrailRedOp_t Operators::add(const Reduction& reduction, std::optional<DataType> type) {
  rows_[next_] = {reduction, type};
  return static_cast<polyrailRedOp_t>(next_++);
}

polyrailRedOp_t Operators::add(polyrailRedOpFunction_t function, void* context, bool is_commutative,
                               const void* identity) {
  auto user = std::make_unique<UserRecord>();
  user->function = function;
  user->context = context;
  user->op.combine = [](const void* a, const void* b, void* out, std::uint64_t count, DataType type,
                        void* record) {
    const auto& own = *static_cast<const UserRecord*>(record);
    own.function(a, b, out, count, static_cast<polyrailDataType_t>(type), own.context);
  };
  user->op.context = user.get();
  user->op.is_commutative = is_commutative;
  user->op.identity = identity;
  users_.push_back(std::move(user));
  return add(Reduction(users_.back()->op), std::nullopt);
}

Status Operators::remove(polyrailRedOp_t op) {
  if (static_cast<int>(op) < kFirst || rows_.erase(static_cast<int>(op)) == 0) return unknown(op);
  return ok();
}

Result<Reduction> Operators::find(polyrailRedOp_t op, polyrailDataType_t type) const {
  const int number = static_cast<int>(op);
  if (number >= 0 && number <= static_cast<int>(polyrailMinLoc)) {
    return Reduction(static_cast<ReduceOp>(number));
  }
  const auto row = rows_.find(number);
  if (row == rows_.end()) return unknown(op);
  const std::optional<DataType>& own = row->second.type;
  if (own && static_cast<int>(*own) != static_cast<int>(type)) {
    return Status(StatusCode::kInvalidArgument, "the operator " + std::to_string(number) +
                                                    " was made for " + std::string(name(*own)) +
                                                    ", not for the data type " +
                                                    std::to_string(static_cast<int>(type)));
  }
  return row->second.reduction;
}

Result<double> read_scalar(const void* scalar, DataType type) {
  switch (type) {
    case DataType::kInt8:
      return exactly(load<std::int8_t>(scalar));
    case DataType::kUint8:
      return exactly(load<std::uint8_t>(scalar));
    case DataType::kInt16:
      return exactly(load<std::int16_t>(scalar));
    case DataType::kUint16:
      return exactly(load<std::uint16_t>(scalar));
    case DataType::kInt32:
      return exactly(load<std::int32_t>(scalar));
    case DataType::kUint32:
      return exactly(load<std::uint32_t>(scalar));
    case DataType::kInt64:
      return exactly(load<std::int64_t>(scalar));
    case DataType::kUint64:
      return exactly(load<std::uint64_t>(scalar));
    case DataType::kFloat16:
      return small_float(load<std::uint16_t>(scalar), 5, 10, true);
    case DataType::kBfloat16:
      return small_float(load<std::uint16_t>(scalar), 8, 7, true);
    case DataType::kFloat8E4M3:
      return small_float(load<std::uint8_t>(scalar), 4, 3, false);
    case DataType::kFloat8E5M2:
      return small_float(load<std::uint8_t>(scalar), 5, 2, true);
    case DataType::kFloat32:
      return static_cast<double>(load<float>(scalar));
    case DataType::kFloat64:
      return load<double>(scalar);
    default:
      return Status(StatusCode::kInvalidArgument, "there is no factor of the data type " +
                                                      std::to_string(static_cast<int>(type)));
  }
}

}  // namespace polyrail::capi
