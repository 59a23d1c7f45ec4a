// Counts beyond 2^31 elements and 4 GiB. Buffers are a few pages mapped again and again, so that
// they take address space and hardly any memory; what lies in them repeats with those pages.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/collective/ranks.hpp"

namespace polyrail {
namespace {

class RepeatedMemory {
 public:
  static constexpr std::size_t kPeriod = std::size_t{16} << 20;

  explicit RepeatedMemory(std::size_t bytes)
      : bytes_((bytes + 2 * kPeriod - 1) / kPeriod * kPeriod) {
    const int file = memfd_create("polyrail_large_test", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, kPeriod) != 0) return;
    void* const at =
        mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) {
      data_ = static_cast<std::uint8_t*>(at);
      for (std::size_t offset = 0; offset < bytes_ && data_ != nullptr; offset += kPeriod) {
        if (mmap(data_ + offset, kPeriod, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                 0) == MAP_FAILED) {
          data_ = nullptr;
        }
      }
    }
    close(file);
  }
  ~RepeatedMemory() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  RepeatedMemory(const RepeatedMemory&) = delete;
  RepeatedMemory& operator=(const RepeatedMemory&) = delete;

  std::uint8_t* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::uint8_t* data_ = nullptr;
};

constexpr std::uint64_t kHuge = (std::uint64_t{1} << 32) + 12345;  // of one byte each

TEST(LargeCounts, ReachBeyond32Bits) {
  run_ranks(2, quick_options("loopback"), [](int rank, Communicator& communicator) {
    RepeatedMemory input(kHuge);
    RepeatedMemory output(kHuge);
    ASSERT_NE(input.data(), nullptr);
    ASSERT_NE(output.data(), nullptr);
    for (std::size_t i = 0; i < RepeatedMemory::kPeriod; ++i) {
      input.data()[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + static_cast<std::size_t>(rank));
    }
    const auto expect_right = [&](auto&& value) {
      for (std::size_t i = 0; i < RepeatedMemory::kPeriod; i += 997) {
        ASSERT_EQ(output.data()[i], static_cast<std::uint8_t>(value(i * 7 + i / 251))) << i;
      }
    };
    Status status =
        communicator.run(Call::broadcast(input.data(), output.data(), kHuge, DataType::kUint8, 1));
    ASSERT_TRUE(status.is_ok()) << status.message();
    expect_right([](std::size_t base) { return base + 1; });
    status = communicator.all_reduce(input.data(), output.data(), kHuge, DataType::kUint8,
                                     ReduceOp::kSum);
    ASSERT_TRUE(status.is_ok()) << status.message();
    expect_right([](std::size_t base) { return 2 * base + 1; });
    // Uneven parts, one of them larger than any 32-bit number says. They begin at whole periods.
    const std::uint64_t counts[] = {RepeatedMemory::kPeriod, kHuge};
    RepeatedMemory gathered(counts[0] + counts[1]);
    ASSERT_NE(gathered.data(), nullptr);
    if (rank == 0) std::memset(input.data(), 1, RepeatedMemory::kPeriod);
    if (rank == 1) std::memset(input.data(), 1, RepeatedMemory::kPeriod);
    status = communicator.run(
        Call::all_gather_v(input.data(), gathered.data(), counts, DataType::kUint8));
    ASSERT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(gathered.data()[12345], 1);
    EXPECT_EQ(gathered.data()[counts[0] + counts[1] - 1], 1);
  });
}

}  // namespace
}  // namespace polyrail
