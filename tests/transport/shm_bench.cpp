// How fast the shm rail is between two processes, with nothing above it: ping-pong and bulk traffic
// by size and method, beside what the bare hardware does. Not a test; transports/shm/README.md says
// how to run it.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <polyrail/communicator.hpp>

#include "transports/shm/shm.hpp"

namespace polyrail {
namespace {

using Clock = std::chrono::steady_clock;

// Shared by both processes.
struct Board {
  struct alignas(64) Line {
    std::atomic<std::uint64_t> value;
  };
  Line lines[2];
  Line barriers[2];
  std::uint64_t round[2];  // private to each
  char addresses[2][4096];
  std::size_t address_bytes[2];
};

void meet(Board& board, int rank) {
  board.barriers[rank].value.store(++board.round[rank]);
  while (board.barriers[1 - rank].value.load() < board.round[rank]) {
  }
}

// Takes everything; sums streamed floats up if asked.
struct BenchSink final : Sink {
  Landing::How how = Landing::How::kInto;
  std::byte* target = nullptr;
  bool is_up = false;
  std::uint64_t arrived_bytes = 0;
  std::uint64_t arrived_count = 0;
  std::uint64_t acknowledged_count = 0;

  void on_up(Endpoint&) override { is_up = true; }
  void on_down(Endpoint&, const Status& why) override {
    std::fprintf(stderr, "down: %s\n", why.message().c_str());
    std::exit(1);
  }
  Landing on_slice(Endpoint&, const SliceHeader& header) override {
    return {how, target + header.offset_bytes};
  }
  void on_landed(Endpoint&, const SliceHeader& header) override { arrive(header.bytes); }
  void on_bytes(Endpoint&, const SliceHeader& header, std::uint32_t offset_bytes,
                std::span<const std::byte> bytes) override {
    const std::size_t count = bytes.size() / sizeof(float);
    const auto* const in = reinterpret_cast<const float*>(bytes.data());
    auto* const sum = reinterpret_cast<float*>(target + header.offset_bytes + offset_bytes);
    for (std::size_t i = 0; i < count; ++i) sum[i] += in[i];
    if (offset_bytes + bytes.size() == header.bytes) arrive(header.bytes);
  }
  void on_acknowledged(Endpoint&, const Acknowledgement&) override { ++acknowledged_count; }
  void on_control(Endpoint&, std::span<const std::byte>) override {}

  void arrive(std::uint64_t bytes) {
    arrived_bytes += bytes;
    ++arrived_count;
  }
};

struct Bench {
  Board& board;
  int rank;
  std::unique_ptr<Transport> transport;
  BenchSink sink;
  Endpoint* peer = nullptr;
  std::uint64_t posted_count = 0;

  explicit Bench(Board& shared, int own_rank) : board(shared), rank(own_rank) {
    TransportContext context;
    context.rank = rank;
    context.rank_count = 2;
    context.key = std::string(32, 'k');
    const Options options;
    transport =
        open_shm(discover_shm(options).value().at(0), context, options, silent_logger()).value();
    const std::string address = transport->address();
    std::memcpy(board.addresses[rank], address.data(), address.size());
    board.address_bytes[rank] = address.size();
    meet(board, rank);
    peer = transport->connect(1 - rank, {board.addresses[1 - rank], board.address_bytes[1 - rank]})
               .value();
    peer->expect(true);
    while (!sink.is_up) transport->progress(sink);
    meet(board, rank);
  }

  void put(std::uint64_t offset_bytes, std::uint32_t bytes, const std::byte* source) {
    SliceHeader header;
    header.offset_bytes = offset_bytes;
    header.bytes = bytes;
    while (peer->put(header, source, 0) == Posted::kBusy) transport->progress(sink);
    ++posted_count;
  }

  // One way, in us: half of the time there and back.
  double ping_pong(std::uint32_t bytes, int count) {
    std::vector<std::byte> source(bytes), target(bytes);
    sink.target = target.data();
    meet(board, rank);
    const auto begin = Clock::now();
    std::uint64_t expected = sink.arrived_count;
    for (int i = 0; i < count; ++i) {
      if (rank == 0) put(0, bytes, source.data());
      ++expected;
      while (sink.arrived_count != expected) transport->progress(sink);
      if (rank == 1) put(0, bytes, source.data());
    }
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    meet(board, rank);
    while (transport->progress(sink)) {
    }
    return us / count / 2;
  }

  // Of one small exchange, in us: what an all-reduce of so many bytes cannot do without.
  double exchange(std::uint32_t bytes, int count) {
    constexpr bool kBoth[] = {true, true};
    SmallExchange& small = *transport->small_exchange();
    std::vector<std::byte> source(bytes);
    meet(board, rank);
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) {
      while (!small.can_post()) {
      }
      small.post(source, kBoth);
      const std::byte* theirs = nullptr;
      while ((theirs = small.poll(1 - rank)) == nullptr) {
      }
      std::memcpy(source.data(), theirs, bytes);
      small.finish();
    }
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    meet(board, rank);
    return us / count;
  }

  // GB/s of one direction.
  double bulk(std::byte* source, std::byte* target, std::uint64_t bytes, std::uint64_t slice_bytes,
              bool is_both_ways, int count) {
    sink.target = target;
    const bool is_sending = rank == 0 || is_both_ways;
    const bool is_receiving = rank == 1 || is_both_ways;
    meet(board, rank);
    const auto begin = Clock::now();
    std::uint64_t arrived = sink.arrived_bytes;
    for (int i = 0; i < count; ++i) {
      arrived += is_receiving ? bytes : 0;  // the peer may be a round ahead
      std::uint64_t offset = is_sending ? 0 : bytes;
      while (sink.arrived_bytes < arrived || offset < bytes ||
             sink.acknowledged_count != posted_count) {
        while (offset < bytes) {
          SliceHeader header;
          header.offset_bytes = offset;
          header.bytes = static_cast<std::uint32_t>(std::min(slice_bytes, bytes - offset));
          // As an engine would: no more than a few slices under way.
          if (posted_count - sink.acknowledged_count >= 8) break;
          if (peer->put(header, source + offset, 0) == Posted::kBusy) break;
          ++posted_count;
          offset += header.bytes;
        }
        transport->progress(sink);
      }
    }
    meet(board, rank);
    const double s = std::chrono::duration<double>(Clock::now() - begin).count();
    return static_cast<double>(bytes) * count / s / 1e9;
  }
};

// One way between the caches of two processors, in us: a word there and back.
double bare_hop(Board& board, int rank, int count) {
  meet(board, rank);
  const std::uint64_t base = board.lines[rank].value.load();
  const auto begin = Clock::now();
  for (int i = 1; i <= count; ++i) {
    if (rank == 0) board.lines[0].value.store(base + i, std::memory_order_release);
    while (board.lines[1 - rank].value.load(std::memory_order_acquire) != base + i) {
    }
    if (rank == 1) board.lines[1].value.store(base + i, std::memory_order_release);
  }
  const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  meet(board, rank);
  return us / count / 2;
}

// Of several series: the median, and the best, which says more on a machine with other work.
struct Summary {
  double median = 0;
  double best = 0;
};

// Each process on a processor of its own, the first two that may be used.
void pin(int rank) {
  cpu_set_t all;
  if (::sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) < 2) return;
  int processor = -1;
  for (int left = rank; left >= 0; --left) {
    do {
      ++processor;
    } while (!CPU_ISSET(processor, &all));
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  ::sched_setaffinity(0, sizeof(one), &one);
}

void run(Board& board, int rank, int repeats, std::uint64_t slice_bytes,
         const std::vector<std::uint64_t>& sizes) {
  pin(rank);
  Bench bench(board, rank);
  const auto repeat = [&](bool is_rate, auto&& once) {
    std::vector<double> values;
    for (int i = 0; i < repeats; ++i) values.push_back(once());
    std::sort(values.begin(), values.end());
    return Summary{values[values.size() / 2], is_rate ? values.back() : values.front()};
  };
  const Summary hop = repeat(false, [&] { return bare_hop(board, rank, 100000); });
  if (rank == 0) {
    std::printf("us one way, median (best)\n  cache line %.3f (%.3f)\n", hop.median, hop.best);
  }
  for (const std::uint32_t bytes : {8U, 64U, 256U, 1024U, 4096U, 16384U, 65536U}) {
    const int count = bytes < 4096 ? 50000 : 5000;
    const Summary hop_of = repeat(false, [&] { return bench.ping_pong(bytes, count); });
    if (rank == 0) {
      std::printf("%10u B %.3f (%.3f)\n", bytes, hop_of.median, hop_of.best);
      std::fflush(stdout);
    }
  }
  for (const std::uint32_t bytes : {8U, 56U, 248U, 504U}) {
    const Summary each = repeat(false, [&] { return bench.exchange(bytes, 100000); });
    if (rank == 0) std::printf("exchange of %u B %.3f (%.3f)\n", bytes, each.median, each.best);
  }
  if (rank == 0) {
    std::printf("GB/s of one direction, median (best)\n%10s %-9s %-7s %-15s %-15s\n", "bytes",
                "source", "landing", "one way", "both ways");
  }
  for (const std::uint64_t bytes : sizes) {
    std::byte* const shared = static_cast<std::byte*>(mem_alloc(bytes).value());
    std::vector<std::byte> ordinary(bytes, std::byte{1});
    std::vector<std::byte> target(bytes, std::byte{2});
    std::memset(shared, 1, bytes);
    const int count = static_cast<int>(std::clamp<std::uint64_t>((256U << 20) / bytes, 1, 2000));
    for (const bool is_shared : {false, true}) {
      for (const auto how : {Landing::How::kInto, Landing::How::kStream}) {
        bench.sink.how = how;
        Summary rates[2];
        for (const bool is_both : {false, true}) {
          rates[is_both] = repeat(true, [&] {
            return bench.bulk(is_shared ? shared : ordinary.data(), target.data(), bytes,
                              std::min(bytes, slice_bytes), is_both, count);
          });
        }
        if (rank == 0) {
          std::printf("%10llu %-9s %-7s %5.2f (%5.2f)   %5.2f (%5.2f)\n",
                      static_cast<unsigned long long>(bytes), is_shared ? "mem_alloc" : "ordinary",
                      how == Landing::How::kInto ? "copy" : "sum", rates[0].median, rates[0].best,
                      rates[1].median, rates[1].best);
          std::fflush(stdout);
        }
      }
    }
    (void)mem_free(shared);
  }
  meet(board, rank);
}

}  // namespace
}  // namespace polyrail

int main(int argc, char** argv) {
  // shm_bench [series of each] [bytes of a slice] [bytes of bulk traffic ...]
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 5;
  const std::uint64_t slice_bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 256 * 1024;
  std::vector<std::uint64_t> sizes{64 << 10, 1 << 20, 16 << 20, 64 << 20};
  if (argc > 3) sizes.clear();
  for (int i = 3; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (repeats < 1 || slice_bytes == 0 || std::count(sizes.begin(), sizes.end(), 0U) != 0) return 2;
  void* const memory = ::mmap(nullptr, sizeof(polyrail::Board), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& board = *static_cast<polyrail::Board*>(memory);
  const pid_t child = ::fork();
  polyrail::run(board, child == 0 ? 1 : 0, repeats, slice_bytes, sizes);
  if (child == 0) ::_exit(0);
  int outcome = 0;
  ::waitpid(child, &outcome, 0);
  return outcome == 0 ? 0 : 1;
}
