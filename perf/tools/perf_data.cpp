#include "perf/tools/perf_data.hpp"

#include <algorithm>
#include <bit>
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

// How an operator's exact values are made. kPreMulSum is one of scaled inputs.
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

// What a rank's input counts in a weighted operator. Weights of averages add up to a power of two,
// so that dividing by their sum is exact.
int factor_of(ReduceOp op, int rank, int rank_count) {
  if (op == ReduceOp::kPreMulSum) return 1 + rank % 2;
  if (op != ReduceOp::kWeightedAvg || rank > 0) return 1;
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(rank_count))) - (rank_count - 1);
}

// Of a weighted average: a multiple of the sum of the weights; in types of a byte of one rank only.
int weighted_input(DataType type, std::uint64_t k, std::uint64_t rank, int rank_count) {
  const auto sum = static_cast<int>(std::bit_ceil(static_cast<unsigned>(rank_count)));
  if (size_bytes(type) > 1) return static_cast<int>((k + rank * 7) % 4) * sum;
  if (rank_count == 1) return k % 2 == 0 ? sum : 0;
  return 1 + k % static_cast<std::uint64_t>(rank_count - 1) == rank ? sum : 0;
}

// Element i of a rank's input; of a pair the value, of a complex number the real part, whose
// imaginary part is 0 for products and else the same.
int input_value(DataType type, ReduceOp op, int rank, int rank_count, std::uint64_t i,
                std::uint64_t seed) {
  const std::uint64_t k = (i + seed) % kPeriod;
  const auto r = static_cast<std::uint64_t>(rank);
  if (op == ReduceOp::kWeightedAvg) return weighted_input(type, k, r, rank_count);
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

int output_value(DataType type, ReduceOp op, int rank_count, int end_rank, std::uint64_t i,
                 std::uint64_t seed) {
  const ReduceOp kind = kind_of(type, op);
  int value = input_value(type, op, 0, rank_count, i, seed) * factor_of(op, 0, rank_count);
  int weights = factor_of(op, 0, rank_count);
  for (int rank = 1; rank < end_rank; ++rank) {
    const int factor = factor_of(op, rank, rank_count);
    const int next = input_value(type, op, rank, rank_count, i, seed) * factor;
    weights += factor;
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
  if (op == ReduceOp::kWeightedAvg) return value / weights;
  return op == ReduceOp::kAvg ? value / rank_count : value;
}

// Where the value of a pair comes from: of each rank's element another place.
int input_index(int rank, std::uint64_t i) {
  return static_cast<int>(i % 1000) * 8 + (rank + static_cast<int>(i % 5)) % 7;
}
int output_index(DataType type, ReduceOp op, int rank_count, int end_rank, std::uint64_t i,
                 std::uint64_t seed) {
  const int value = output_value(type, op, rank_count, end_rank, i, seed);
  int least = -1;
  for (int rank = 0; rank < end_rank; ++rank) {
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

// One period of elements, from element `first` on; value(i) and index(i) give their parts.
template <typename Value, typename Index>
std::vector<std::byte> period(DataType type, ReduceOp op, std::uint64_t first, Value&& value,
                              Index&& index) {
  const std::size_t size = size_bytes(type);
  std::vector<std::byte> bytes(kPeriod * size);
  for (std::uint64_t i = 0; i < kPeriod; ++i) {
    const int v = value(i);
    const int imaginary = op == ReduceOp::kProd ? 0 : v;
    put(type, bytes.data() + i * size, v, is_indexed(type) ? index(i) : imaginary);
  }
  const auto middle = static_cast<std::ptrdiff_t>(first % kPeriod * size);
  std::rotate(bytes.begin(), bytes.begin() + middle, bytes.end());
  return bytes;
}

void combine_xor(const void* a, const void* b, void* out, std::uint64_t count, DataType type,
                 void*) {
  for (std::uint64_t i = 0; i < count * size_bytes(type); ++i) {
    static_cast<std::uint8_t*>(out)[i] =
        static_cast<const std::uint8_t*>(a)[i] ^ static_cast<const std::uint8_t*>(b)[i];
  }
}
constexpr UserOp kXorOfBytes{.combine = combine_xor, .is_commutative = true};

// Word i of an owner's stream: splitmix64, by which each input has another output.
std::uint64_t stream_word(int owner, std::uint64_t seed, std::uint64_t i) {
  std::uint64_t x = (static_cast<std::uint64_t>(owner) << 48 ^ seed << 40 ^ i) + 1;
  x *= 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Number of elements in which two stretches of memory are different.
std::uint64_t count_different(const std::byte* a, const std::byte* b, std::uint64_t bytes,
                              std::size_t size) {
  if (std::memcmp(a, b, bytes) == 0) return 0;
  std::uint64_t different = 0;
  for (std::uint64_t i = 0; i < bytes; i += size) {
    different += std::memcmp(a + i, b + i, size) != 0;
  }
  return different;
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
                int rank_count, std::uint64_t seed, std::uint64_t first) {
  if (op == ReduceOp::kUser) {
    const std::size_t size = size_bytes(type);
    return fill_input(data, count * size, DataType::kUint8, ReduceOp::kBitXor, rank, rank_count,
                      seed, first * size);
  }
  const std::vector<std::byte> block = period(
      type, op, first,
      [&](std::uint64_t i) { return input_value(type, op, rank, rank_count, i, seed); },
      [&](std::uint64_t i) { return input_index(rank, i); });
  const std::uint64_t bytes = count * size_bytes(type);
  for (std::uint64_t at = 0; at < bytes; at += block.size()) {
    std::memcpy(static_cast<std::byte*>(data) + at, block.data(),
                std::min<std::uint64_t>(block.size(), bytes - at));
  }
}

std::uint64_t count_wrong(const void* data, std::uint64_t count, DataType type, ReduceOp op,
                          int rank_count, std::uint64_t seed, std::uint64_t first, int end_rank) {
  const std::size_t size = size_bytes(type);
  if (op == ReduceOp::kUser) {
    return count_wrong(data, count * size, DataType::kUint8, ReduceOp::kBitXor, rank_count, seed,
                       first * size, end_rank);
  }
  const int end = end_rank > 0 ? end_rank : rank_count;
  const std::vector<std::byte> block = period(
      type, op, first,
      [&](std::uint64_t i) { return output_value(type, op, rank_count, end, i, seed); },
      [&](std::uint64_t i) { return output_index(type, op, rank_count, end, i, seed); });
  const std::uint64_t bytes = count * size;
  std::uint64_t wrong = 0;
  for (std::uint64_t at = 0; at < bytes; at += block.size()) {
    wrong += count_different(static_cast<const std::byte*>(data) + at, block.data(),
                             std::min<std::uint64_t>(block.size(), bytes - at), size);
  }
  return wrong;
}

Reduction reduction_of(ReduceOp op, int rank, int rank_count) {
  if (op == ReduceOp::kUser) return kXorOfBytes;
  Reduction reduction(op);
  reduction.factor = factor_of(op, rank, rank_count);
  return reduction;
}

void fill_stream(void* data, std::uint64_t bytes, int owner, std::uint64_t seed,
                 std::uint64_t first_byte) {
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t place = first_byte + at;
    const std::uint64_t word = stream_word(owner, seed, place / 8);
    const std::uint64_t length = std::min<std::uint64_t>(8 - place % 8, bytes - at);
    std::memcpy(static_cast<std::byte*>(data) + at,
                reinterpret_cast<const std::byte*>(&word) + place % 8, length);
    at += length;
  }
}

std::uint64_t count_wrong_stream(const void* data, std::uint64_t count, DataType type, int owner,
                                 std::uint64_t seed, std::uint64_t first_byte) {
  std::byte block[4096];  // whole elements of every type
  const std::uint64_t bytes = count * size_bytes(type);
  std::uint64_t wrong = 0;
  for (std::uint64_t at = 0; at < bytes; at += sizeof block) {
    const std::uint64_t length = std::min<std::uint64_t>(sizeof block, bytes - at);
    fill_stream(block, length, owner, seed, first_byte + at);
    wrong +=
        count_different(static_cast<const std::byte*>(data) + at, block, length, size_bytes(type));
  }
  return wrong;
}

}  // namespace polyrail::perf
