#include "perf/tools/perf_data.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include <polyrail/communicator.hpp>

namespace polyrail::perf {
namespace {

constexpr std::uint64_t kPeriod = 251;  // prime: no power-of-two cut hides a shifted block

// bf16 and fp16 hold these small integers exactly, so plain bit work is enough.
std::uint16_t to_bfloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

std::uint16_t to_float16(float value) {
  if (value == 0) return 0;
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t sign = bits >> 31;
  const auto exponent = static_cast<std::int32_t>(bits >> 23 & 0xff) - 127 + 15;
  return static_cast<std::uint16_t>(sign << 15 | static_cast<std::uint32_t>(exponent) << 10 |
                                    (bits >> 13 & 0x3ff));
}

// Element i of a rank's input. Products: mostly ones and a few twos, at most two of them at one
// element, so that they stay exact for any number of ranks.
int input_value(ReduceOp op, int rank, int rank_count, std::uint64_t i, std::uint64_t seed) {
  const std::uint64_t k = (i + seed) % kPeriod;
  if (op == ReduceOp::kProd) {
    const auto one = static_cast<int>(k % static_cast<std::uint64_t>(rank_count));
    return rank == one ? 2 : 1;
  }
  if (op == ReduceOp::kAvg) return static_cast<int>(k % 4) * rank_count;
  // The sum of all ranks stays below 256 up to 85 ranks: exact in bfloat16.
  return static_cast<int>((k + static_cast<std::uint64_t>(rank) * 7) % 4) -
         (rank_count <= 2 ? 0 : 1);
}

int output_value(ReduceOp op, int rank_count, std::uint64_t i, std::uint64_t seed) {
  int value = input_value(op, 0, rank_count, i, seed);
  for (int rank = 1; rank < rank_count; ++rank) {
    const int next = input_value(op, rank, rank_count, i, seed);
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        value += next;
        break;
      case ReduceOp::kProd:
        value *= next;
        break;
      case ReduceOp::kMax:
        value = std::max(value, next);
        break;
      case ReduceOp::kMin:
        value = std::min(value, next);
        break;
      default:
        break;
    }
  }
  return op == ReduceOp::kAvg ? value / rank_count : value;
}

// One period of the values in a type, as bytes.
template <typename Value>
std::vector<std::byte> period(DataType type, Value&& value) {
  const std::size_t size = size_bytes(type);
  std::vector<std::byte> bytes(kPeriod * size);
  for (std::uint64_t i = 0; i < kPeriod; ++i) {
    std::byte* at = bytes.data() + i * size;
    const int v = value(i);
    const auto put = [&](auto typed) { std::memcpy(at, &typed, sizeof typed); };
    switch (type) {
      case DataType::kInt32:
        put(static_cast<std::int32_t>(v));
        break;
      case DataType::kInt64:
        put(static_cast<std::int64_t>(v));
        break;
      case DataType::kFloat16:
        put(to_float16(static_cast<float>(v)));
        break;
      case DataType::kBfloat16:
        put(to_bfloat16(static_cast<float>(v)));
        break;
      case DataType::kFloat32:
        put(static_cast<float>(v));
        break;
      case DataType::kFloat64:
        put(static_cast<double>(v));
        break;
      default:
        break;
    }
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
  const std::vector<std::byte> block =
      period(type, [&](std::uint64_t i) { return input_value(op, rank, rank_count, i, seed); });
  const std::uint64_t bytes = count * size_bytes(type);
  for (std::uint64_t at = 0; at < bytes; at += block.size()) {
    std::memcpy(static_cast<std::byte*>(data) + at, block.data(),
                std::min<std::uint64_t>(block.size(), bytes - at));
  }
}

std::uint64_t count_wrong(const void* data, std::uint64_t count, DataType type, ReduceOp op,
                          int rank_count, std::uint64_t seed) {
  const std::vector<std::byte> block =
      period(type, [&](std::uint64_t i) { return output_value(op, rank_count, i, seed); });
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
