#include "perf/tools/perf_data.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include <polyrail/communicator.hpp>

namespace polyrail::perf {
namespace {

constexpr std::uint64_t kPeriod = 251;  // prime: no power-of-two cut hides a shifted block

// Small integers are exact in every floating-point type, so plain bit work is enough: the pattern
// of a format with so many bits of exponent and mantissa.
std::uint32_t to_small_float(float value, int exponent_bits, int mantissa_bits) {
  if (value == 0) return 0;
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t sign = bits >> 31;
  const auto exponent =
      static_cast<std::int32_t>(bits >> 23 & 0xff) - 127 + (1 << (exponent_bits - 1)) - 1;
  return sign << (exponent_bits + mantissa_bits) |
         static_cast<std::uint32_t>(exponent) << mantissa_bits |
         (bits & 0x7fffff) >> (23 - mantissa_bits);
}

bool is_unsigned(DataType type) {
  return type == DataType::kUint8 || type == DataType::kUint16 || type == DataType::kUint32 ||
         type == DataType::kUint64;
}

// How an operator's exact values are made. Those left to others count as sums.
ReduceOp kind_of(DataType type, ReduceOp op) {
  if (op > ReduceOp::kMinLoc) op = ReduceOp::kSum;
  if (type != DataType::kBool) return op;
  if (op == ReduceOp::kSum || op == ReduceOp::kMax) return ReduceOp::kLogicalOr;
  if (op == ReduceOp::kProd || op == ReduceOp::kMin) return ReduceOp::kLogicalAnd;
  return op;
}

bool is_bitwise(ReduceOp op) {
  return op >= ReduceOp::kBitAnd && op <= ReduceOp::kBitXor;
}
bool is_logical(ReduceOp op) {
  return op >= ReduceOp::kLogicalAnd && op <= ReduceOp::kLogicalXor;
}

// Element i of a rank's input; of a pair the value, of a complex number the real part, whose
// imaginary part is 0 for products and else the same.
int input_value(DataType type, ReduceOp op, int rank, int rank_count, std::uint64_t i,
                std::uint64_t seed) {
  const std::uint64_t k = (i + seed) % kPeriod;
  const auto r = static_cast<std::uint64_t>(rank);
  op = kind_of(type, op);
  if (op == ReduceOp::kProd) {
    // Ones and one two at each element.
    const auto one = static_cast<int>(k % static_cast<std::uint64_t>(rank_count));
    return rank == one ? 2 : 1;
  }
  if (is_bitwise(op) && type != DataType::kBool) {
    // Mostly ones for "and", mostly zeros for "or", any for "xor".
    const auto bits = static_cast<int>((k * 37 + r * 11) % 128);
    if (op == ReduceOp::kBitXor) return bits;
    const int one_bit = 1 << (bits % 7);
    return op == ReduceOp::kBitAnd ? 127 ^ one_bit : one_bit;
  }
  if (is_bitwise(op) || is_logical(op)) {
    // All ranks alike, for some elements, or one rank unlike the others.
    const bool is_odd_one = (k / 2) % static_cast<std::uint64_t>(rank_count + 1) == r;
    const bool is_true = (k % 2 != 0) != is_odd_one;
    return is_true ? (type == DataType::kBool ? 1 : 1 + static_cast<int>(k % 3)) : 0;
  }
  // Types of a byte hold few exact integers: one rank has the sum of all at each element.
  if (size_bytes(type) == 1 && (op == ReduceOp::kSum || op == ReduceOp::kAvg)) {
    if (k % static_cast<std::uint64_t>(rank_count) != r) return 0;
    if (op == ReduceOp::kSum) return static_cast<int>(k % 5) - (is_unsigned(type) ? 0 : 2);
    int significant = rank_count;  // three bits, for fp8 e5m2
    while (significant % 2 == 0) significant /= 2;
    return k % 2 == 0 && significant < 8 && rank_count < 128 ? rank_count : 0;
  }
  if (op == ReduceOp::kAvg) return static_cast<int>(k % 4) * rank_count;
  // The sum of all ranks stays below 256 up to 85 ranks: exact in bfloat16.
  const int value = static_cast<int>((k + r * 7) % 4);
  return is_unsigned(type) || rank_count <= 2 ? value : value - 1;
}

int output_value(DataType type, ReduceOp op, int rank_count, std::uint64_t i, std::uint64_t seed) {
  const ReduceOp kind = kind_of(type, op);
  int value = input_value(type, op, 0, rank_count, i, seed);
  for (int rank = 1; rank < rank_count; ++rank) {
    const int next = input_value(type, op, rank, rank_count, i, seed);
    switch (kind) {
      case ReduceOp::kProd:
        value *= next;
        break;
      case ReduceOp::kMax:
      case ReduceOp::kMaxLoc:
        value = std::max(value, next);
        break;
      case ReduceOp::kMin:
      case ReduceOp::kMinLoc:
        value = std::min(value, next);
        break;
      case ReduceOp::kBitAnd:
        value &= next;
        break;
      case ReduceOp::kBitOr:
        value |= next;
        break;
      case ReduceOp::kBitXor:
        value ^= next;
        break;
      case ReduceOp::kLogicalAnd:
        value = value != 0 && next != 0;
        break;
      case ReduceOp::kLogicalOr:
        value = value != 0 || next != 0;
        break;
      case ReduceOp::kLogicalXor:
        value = (value != 0) != (next != 0);
        break;
      default:
        value += next;
    }
  }
  return op == ReduceOp::kAvg ? value / rank_count : value;
}

// Where the value of a pair comes from: of each rank's element another place.
int input_index(int rank, std::uint64_t i) {
  return static_cast<int>(i % 1000) * 8 + (rank + static_cast<int>(i % 5)) % 7;
}
int output_index(DataType type, ReduceOp op, int rank_count, std::uint64_t i, std::uint64_t seed) {
  const int value = output_value(type, op, rank_count, i, seed);
  int least = -1;
  for (int rank = 0; rank < rank_count; ++rank) {
    if (input_value(type, op, rank, rank_count, i, seed) != value) continue;
    const int index = input_index(rank, i);
    if (least < 0 || index < least) least = index;
  }
  return least;
}

// Writes `value` as an element; `second` is the index of a pair, the imaginary part of a complex
// number.
void put(DataType type, std::byte* at, int value, int second) {
  const auto write = [&](auto... parts) {
    ((std::memcpy(at, &parts, sizeof parts), at += sizeof parts), ...);
  };
  const auto small = [&](int exponent_bits, int mantissa_bits) {
    return to_small_float(static_cast<float>(value), exponent_bits, mantissa_bits);
  };
  switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kBool:
    case DataType::kInt4x2:
      return write(static_cast<std::uint8_t>(value));
    case DataType::kInt16:
    case DataType::kUint16:
      return write(static_cast<std::uint16_t>(value));
    case DataType::kInt32:
    case DataType::kUint32:
      return write(static_cast<std::uint32_t>(value));
    case DataType::kInt64:
    case DataType::kUint64:
      return write(static_cast<std::int64_t>(value));
    case DataType::kFloat8E4M3:
      return write(static_cast<std::uint8_t>(small(4, 3)));
    case DataType::kFloat8E5M2:
      return write(static_cast<std::uint8_t>(small(5, 2)));
    case DataType::kFloat16:
      return write(static_cast<std::uint16_t>(small(5, 10)));
    case DataType::kBfloat16:
      return write(static_cast<std::uint16_t>(small(8, 7)));
    case DataType::kFloat32:
      return write(static_cast<float>(value));
    case DataType::kFloat64:
      return write(static_cast<double>(value));
    case DataType::kComplex64:
      return write(static_cast<float>(value), static_cast<float>(second));
    case DataType::kComplex128:
      return write(static_cast<double>(value), static_cast<double>(second));
    case DataType::kFloat32Index:
      return write(static_cast<float>(value), static_cast<std::int32_t>(second));
    case DataType::kFloat64Index:
      return write(static_cast<double>(value), static_cast<std::int64_t>(second));
    case DataType::kInt32Index:
      return write(static_cast<std::int32_t>(value), static_cast<std::int32_t>(second));
    case DataType::kInt64Index:
      return write(static_cast<std::int64_t>(value), static_cast<std::int64_t>(second));
  }
}

// One period of elements; value(i) and index(i) give their parts.
template <typename Value, typename Index>
std::vector<std::byte> period(DataType type, ReduceOp op, Value&& value, Index&& index) {
  const std::size_t size = size_bytes(type);
  std::vector<std::byte> bytes(kPeriod * size);
  for (std::uint64_t i = 0; i < kPeriod; ++i) {
    const int v = value(i);
    const int imaginary = op == ReduceOp::kProd ? 0 : v;
    put(type, bytes.data() + i * size, v, is_indexed(type) ? index(i) : imaginary);
  }
  return bytes;
}

}  // namespace

Buffer::Buffer(std::uint64_t count, DataType type, bool is_shared, std::uint64_t unalign)
    : is_shared_(is_shared) {
  const std::size_t bytes = (count + unalign) * size_bytes(type) + 64;
  if (is_shared) {
    Result<void*> memory = mem_alloc(bytes);
    if (!memory.is_ok()) throw std::bad_alloc();
    memory_ = memory.value();
  } else {
    memory_ = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory_ == nullptr) throw std::bad_alloc();
    std::memset(memory_, 0, bytes);
  }
  data_ = static_cast<std::byte*>(memory_) + unalign * size_bytes(type);
}

Buffer::~Buffer() {
  if (is_shared_) {
    (void)mem_free(memory_);
  } else {
    std::free(memory_);
  }
}

void fill_input(void* data, std::uint64_t count, DataType type, ReduceOp op, int rank,
                int rank_count, std::uint64_t seed) {
  const std::vector<std::byte> block = period(
      type, op, [&](std::uint64_t i) { return input_value(type, op, rank, rank_count, i, seed); },
      [&](std::uint64_t i) { return input_index(rank, i); });
  const std::uint64_t bytes = count * size_bytes(type);
  for (std::uint64_t at = 0; at < bytes; at += block.size()) {
    std::memcpy(static_cast<std::byte*>(data) + at, block.data(),
                std::min<std::uint64_t>(block.size(), bytes - at));
  }
}

std::uint64_t count_wrong(const void* data, std::uint64_t count, DataType type, ReduceOp op,
                          int rank_count, std::uint64_t seed) {
  const std::vector<std::byte> block = period(
      type, op, [&](std::uint64_t i) { return output_value(type, op, rank_count, i, seed); },
      [&](std::uint64_t i) { return output_index(type, op, rank_count, i, seed); });
  const std::size_t size = size_bytes(type);
  const std::uint64_t bytes = count * size;
  std::uint64_t wrong = 0;
  for (std::uint64_t at = 0; at < bytes; at += block.size()) {
    const std::byte* seen = static_cast<const std::byte*>(data) + at;
    const std::uint64_t length = std::min<std::uint64_t>(block.size(), bytes - at);
    if (std::memcmp(seen, block.data(), length) == 0) continue;
    for (std::uint64_t i = 0; i < length; i += size) {
      wrong += std::memcmp(seen + i, block.data() + i, size) != 0;
    }
  }
  return wrong;
}

}  // namespace polyrail::perf
