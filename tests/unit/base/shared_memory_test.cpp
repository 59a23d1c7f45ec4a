#include "src/base/shared_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace polyrail {
namespace {

std::byte* allocate(std::size_t bytes) {
  const auto memory = mem_alloc(bytes);
  EXPECT_TRUE(memory.is_ok()) << memory.status().message();
  return static_cast<std::byte*>(memory.value());
}

TEST(SharedMemory, IsZeroedAlignedAndWritable) {
  for (const std::size_t bytes : {0UL, 1UL, 4096UL, 4097UL, 10'000'000UL}) {
    std::byte* const memory = allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % page_bytes(), 0u);
    EXPECT_TRUE(std::all_of(memory, memory + bytes, [](auto byte) { return byte == std::byte{}; }));
    std::memset(memory, 1, bytes);
    EXPECT_TRUE(mem_free(memory).is_ok());
  }
}

TEST(SharedMemory, IsFoundByAnyRangeWithinABlockAndByNoOther) {
  SharedMemoryView view;
  const std::size_t bytes = 3 * page_bytes();
  std::byte* const first = allocate(bytes);
  std::byte* const second = allocate(bytes);
  const auto block = view.find(first, bytes);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->base(), first);
  EXPECT_EQ(view.find(first + 5, 1), block);
  EXPECT_EQ(view.find(first + bytes - 1, 1), block);
  EXPECT_NE(view.find(second, bytes), block);
  EXPECT_EQ(view.find(first + 1, bytes), nullptr);
  EXPECT_EQ(view.find(first, SIZE_MAX), nullptr);
  std::byte ordinary{};
  EXPECT_EQ(view.find(&ordinary, 1), nullptr);
  EXPECT_EQ(view.find(nullptr, 0), nullptr);
  EXPECT_TRUE(mem_free(first).is_ok());
  EXPECT_TRUE(mem_free(second).is_ok());
  EXPECT_EQ(view.find(second, 1), nullptr);
}

TEST(SharedMemory, StaysAsLongAsSomebodyHoldsTheBlock) {
  SharedMemoryView view;
  std::byte* const memory = allocate(100);
  *memory = std::byte{7};
  auto block = view.find(memory, 100);
  EXPECT_TRUE(mem_free(memory).is_ok());
  EXPECT_EQ(view.find(memory, 100), nullptr);
  EXPECT_EQ(*block->base(), std::byte{7});
}

TEST(SharedMemory, GivesItsPagesBackEvenIfTheFileIsStillMapped) {
  SharedMemoryView view;
  std::byte* const memory = allocate(100);
  *memory = std::byte{7};
  const auto file = open_descriptor_of(::getpid(), view.find(memory, 1)->descriptor(), 2);
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  const auto mapping = map_file(file.value(), 0, page_bytes());
  ASSERT_TRUE(mapping.is_ok()) << mapping.status().message();
  EXPECT_EQ(*mapping.value().base(), std::byte{7});
  EXPECT_TRUE(mem_free(memory).is_ok());
  EXPECT_EQ(*mapping.value().base(), std::byte{0});
}

TEST(SharedMemory, NeverUsesAnIdAgain) {
  SharedMemoryView view;
  std::uint64_t last_id = 0;
  for (int i = 0; i < 100; ++i) {
    std::byte* const memory = allocate(100);
    EXPECT_GT(view.find(memory, 1)->id(), last_id);
    last_id = view.find(memory, 1)->id();
    EXPECT_TRUE(mem_free(memory).is_ok());
  }
}

TEST(SharedMemory, RefusesWhatItCannotDo) {
  EXPECT_TRUE(mem_free(nullptr).is_ok());
  int ordinary = 0;
  EXPECT_EQ(mem_free(&ordinary).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(mem_alloc(SIZE_MAX).status().code(), StatusCode::kInvalidArgument);
  std::byte* const memory = allocate(100);
  EXPECT_EQ(mem_free(memory + 1).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(mem_free(memory).is_ok());
  EXPECT_EQ(mem_free(memory).code(), StatusCode::kInvalidArgument);
}

TEST(SharedMemory, IsAllocatedAndFreedByManyThreads) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      SharedMemoryView view;
      for (int i = 0; i < 200; ++i) {
        std::byte* const memory = allocate(10'000);
        std::memset(memory, thread, 10'000);
        const auto block = view.find(memory + 9'000, 1'000);
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(block->base(), memory);
        EXPECT_EQ(memory[9'999], std::byte(thread));
        EXPECT_TRUE(mem_free(memory).is_ok());
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace polyrail
