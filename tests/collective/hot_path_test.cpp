// From a call whose plan is in the cache to its result: no allocation and no lock.
//
// Allocation and locking functions of the whole program are counted here, on the threads of the
// ranks and only while they run the calls under test.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdlib>
#include <new>

#include "tests/collective/ranks.hpp"

namespace {

thread_local bool t_is_counting = false;
thread_local long t_allocations = 0;
thread_local long t_locks = 0;

void* count_and_allocate(std::size_t bytes) {
  if (t_is_counting) ++t_allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return count_and_allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return count_and_allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const Lock lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (t_is_counting) ++t_locks;
  return lock(mutex);
}

namespace polyrail {
namespace {

void expect_nothing_taken(const std::string& transports, std::uint64_t count) {
  run_ranks(2, quick_options(transports), [&](int, Communicator& communicator) {
    std::vector<float> input(count, 1);
    std::vector<float> output(count);
    const auto call = [&] {
      return communicator
          .all_reduce(input.data(), output.data(), count, DataType::kFloat32, ReduceOp::kSum)
          .is_ok();
    };
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(call());  // plans, grows and settles
    t_allocations = t_locks = 0;
    t_is_counting = true;
    bool is_ok = true;
    for (int i = 0; i < 100; ++i) is_ok = call() && is_ok;
    t_is_counting = false;
    EXPECT_TRUE(is_ok);
    EXPECT_EQ(t_allocations, 0) << transports << ", " << count << " elements";
    EXPECT_EQ(t_locks, 0) << transports << ", " << count << " elements";
  });
}

TEST(HotPath, TakesNoMemoryAndNoLockWithACachedPlan) {
  for (const char* transports : {"loopback", "shm", "tcp"}) {
    for (std::uint64_t count : {2u, 1000u, 100000u}) expect_nothing_taken(transports, count);
  }
}

TEST(HotPath, CountersCount) {
  t_allocations = t_locks = 0;
  t_is_counting = true;
  std::vector<int> numbers(100);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  t_is_counting = false;
  EXPECT_GE(t_allocations, 1);
  EXPECT_EQ(t_locks, 1);
  EXPECT_EQ(numbers[99], 0);
}

}  // namespace
}  // namespace polyrail
