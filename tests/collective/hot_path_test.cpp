// From a call whose plan is in the cache to its result: no allocation and no lock; and to its first
// bytes on the way: no system call but the send itself.
//
// Allocation and locking functions and system calls of the whole program are counted here, on the
// threads of the ranks and only while they run the calls under test.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "tests/collective/expected.hpp"
#include "tests/collective/ranks.hpp"

namespace {

thread_local bool t_is_counting = false;
thread_local long t_allocations = 0;
thread_local long t_locks = 0;
thread_local long t_system_calls = 0;   // others than sending
thread_local long t_calls_before = -1;  // how many there were before the first send; -1: none yet

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

namespace {

void count_send() {
  if (t_is_counting && t_calls_before < 0) t_calls_before = t_system_calls;
}
void count_system_call() {
  if (t_is_counting) ++t_system_calls;
}
template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// Stands before a function of the C library: counts, then calls it.
#define POLYRAIL_COUNT(count, result, name, parameters, arguments) \
  extern "C" result name parameters {                              \
    static const auto call = next<result(*) parameters>(#name);    \
    count();                                                       \
    return call arguments;                                         \
  }                                                                \
  static_assert(true)

POLYRAIL_COUNT(count_send, ssize_t, send, (int fd, const void* data, size_t bytes, int flags),
               (fd, data, bytes, flags));
POLYRAIL_COUNT(count_send, ssize_t, sendmsg, (int fd, const msghdr* message, int flags),
               (fd, message, flags));
POLYRAIL_COUNT(count_system_call, ssize_t, recv, (int fd, void* data, size_t bytes, int flags),
               (fd, data, bytes, flags));
POLYRAIL_COUNT(count_system_call, ssize_t, readv, (int fd, const iovec* spans, int count),
               (fd, spans, count));
POLYRAIL_COUNT(count_system_call, ssize_t, read, (int fd, void* data, size_t bytes),
               (fd, data, bytes));
POLYRAIL_COUNT(count_system_call, ssize_t, write, (int fd, const void* data, size_t bytes),
               (fd, data, bytes));
POLYRAIL_COUNT(count_system_call, int, poll, (pollfd * fds, nfds_t count, int limit_ms),
               (fds, count, limit_ms));
POLYRAIL_COUNT(count_system_call, int, epoll_wait,
               (int fd, epoll_event* events, int count, int limit_ms),
               (fd, events, count, limit_ms));
POLYRAIL_COUNT(count_system_call, int, epoll_ctl,
               (int fd, int what, int watched, epoll_event* event), (fd, what, watched, event));
POLYRAIL_COUNT(count_system_call, int, setsockopt,
               (int fd, int level, int name, const void* value, socklen_t bytes),
               (fd, level, name, value, bytes));

namespace polyrail {
namespace {

void expect_nothing_taken(const std::string& transports, Collective collective, std::uint64_t count,
                          bool is_uneven) {
  run_ranks(2, quick_options(transports), [&](int rank, Communicator& communicator) {
    testing::Case c{.collective = collective, .count = count, .root = 1};
    if (is_uneven) c.counts = {count, count / 2};
    if (is_uneven && collective == Collective::kAllToAll) c.counts = {count, 1, count / 2, 0};
    testing::CaseRun<float> run(c, rank, 2, 0);
    const Call call = run.call();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(communicator.run(call).is_ok());  // plans, grows
    t_allocations = t_locks = 0;
    t_is_counting = true;
    bool is_ok = true;
    for (int i = 0; i < 100; ++i) is_ok = communicator.run(call).is_ok() && is_ok;
    t_is_counting = false;
    EXPECT_TRUE(is_ok);
    EXPECT_EQ(t_allocations, 0) << transports << ", " << c.text();
    EXPECT_EQ(t_locks, 0) << transports << ", " << c.text();
  });
}

TEST(HotPath, TakesNoMemoryAndNoLockWithACachedPlan) {
  for (const char* transports : {"loopback", "shm", "tcp"}) {
    for (std::uint64_t count : {2u, 1000u, 100000u}) {
      expect_nothing_taken(transports, Collective::kAllReduce, count, false);
    }
    for (const Collective collective :
         {Collective::kReduce, Collective::kBroadcast, Collective::kReduceScatter,
          Collective::kAllGather, Collective::kAllToAll, Collective::kGather, Collective::kScatter,
          Collective::kBarrier, Collective::kScan}) {
      for (std::uint64_t count : {2u, 50000u}) {
        expect_nothing_taken(transports, collective, count, false);
      }
      const bool has_parts =
          collective >= Collective::kReduceScatter && collective <= Collective::kScatter;
      if (has_parts) expect_nothing_taken(transports, collective, 5000, true);
    }
  }
}

TEST(HotPath, SendsBeforeAnyOtherSystemCall) {
  for (std::uint64_t count : {2u, 1000u, 100000u}) {
    run_ranks(2, quick_options("tcp"), [&](int, Communicator& communicator) {
      std::vector<float> data(count, 1);
      const auto call = [&] {
        return communicator
            .all_reduce(data.data(), data.data(), count, DataType::kFloat32, ReduceOp::kMax)
            .is_ok();
      };
      for (int i = 0; i < 20; ++i) ASSERT_TRUE(call());
      for (int i = 0; i < 100; ++i) {
        t_system_calls = 0;
        t_calls_before = -1;
        t_is_counting = true;
        const bool is_ok = call();
        t_is_counting = false;
        ASSERT_TRUE(is_ok);
        ASSERT_EQ(t_calls_before, 0) << count << " elements";
        ASSERT_GT(t_system_calls, 0) << "receiving takes some";
      }
    });
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
