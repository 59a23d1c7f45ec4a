// What a tcp rail costs beside sockets written by hand: ping-pong of 8 bytes and one-way bulk, each
// spinning or asleep. Two threads of this process are the two hosts; each enters its own network
// namespace. Not a test: `tcp_rail_bench` says how to call it, transports/tcp/README.md what came
// out.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "src/base/log.hpp"
#include "transports/tcp/socket.hpp"
#include "transports/tcp/tcp.hpp"

namespace polyrail {
namespace {

constexpr int kPings = 20000;
constexpr std::size_t kSliceBytes = 256 * 1024;
constexpr std::size_t kBulkBytes = std::size_t{256} << 20;
constexpr std::size_t kBulkSlices = kBulkBytes / kSliceBytes;
constexpr std::size_t kInFlight = 8;  // slices that the sender keeps under way

struct Host {
  std::string space, device, ip;
};

struct Cost {
  double wall_s = 0;
  double cpu_s[2] = {};  // of the two ends
};

void die(const std::string& what) {
  std::fprintf(stderr, "tcp_rail_bench: %s\n", what.c_str());
  std::exit(1);
}

void enter(const Host& host) {
  if (host.space == "-") return;
  const std::string path = "/run/netns/" + host.space;
  const int fd = open(path.c_str(), O_RDONLY);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) die(path + ": " + std::strerror(errno));
  close(fd);
}

double thread_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// One end of a way to send, as the two measurements below use it.
class End {
 public:
  virtual ~End() = default;
  virtual void send_ping() = 0;
  virtual void await_ping() = 0;
  virtual void send_bulk(const std::byte* source) = 0;
  virtual void receive_bulk(std::byte* target) = 0;
};

// Sockets by hand: non-blocking and asked again and again, or blocking.
class PlainEnd final : public End {
 public:
  PlainEnd(int fd, bool sleeps) : fd_(fd), flags_(sleeps ? 0 : MSG_DONTWAIT) {
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  }
  void send_ping() override { write_all(ping_, sizeof(ping_)); }
  void await_ping() override { read_all(reinterpret_cast<std::byte*>(ping_), sizeof(ping_)); }
  void send_bulk(const std::byte* source) override {
    for (std::size_t i = 0; i < kBulkSlices; ++i) write_all(source, kSliceBytes);
    await_ping();
  }
  void receive_bulk(std::byte* target) override {
    for (std::size_t i = 0; i < kBulkSlices; ++i) read_all(target, kSliceBytes);
    send_ping();
  }

 private:
  void write_all(const void* bytes, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const ssize_t sent = send(fd_, static_cast<const char*>(bytes) + done, size - done, flags_);
      if (sent > 0) done += static_cast<std::size_t>(sent);
    }
  }
  void read_all(std::byte* bytes, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const ssize_t got = recv(fd_, bytes + done, size - done, flags_);
      if (got > 0) done += static_cast<std::size_t>(got);
    }
  }
  int fd_;
  int flags_;
  char ping_[8] = {};
};

class RailEnd final : public End, private Sink {
 public:
  RailEnd(Transport& transport, bool sleeps) : transport_(transport), sleeps_(sleeps) {}
  void meet(int peer, const std::string& address) {
    auto endpoint = transport_.connect(peer, address);
    if (!endpoint.is_ok()) die(endpoint.status().message());
    endpoint_ = endpoint.value();
    wait([this] { return endpoint_->state() == EndpointState::kUp; });
    endpoint_->expect(true);
  }
  void set_sleeps(bool sleeps) { sleeps_ = sleeps; }
  void send_ping() override {
    SliceHeader header;
    header.bytes = sizeof(ping_);
    while (endpoint_->put(header, ping_, 0) == Posted::kBusy) transport_.progress(*this);
  }
  void await_ping() override {
    ++awaited_;
    wait([this] { return landed_ >= awaited_; });
  }
  void send_bulk(const std::byte* source) override {
    const std::size_t begin = acknowledged_;
    SliceHeader header;
    header.bytes = kSliceBytes;
    for (std::size_t posted = 0; posted < kBulkSlices;) {
      if (posted - (acknowledged_ - begin) < kInFlight &&
          endpoint_->put(header, source, 1) != Posted::kBusy) {
        ++posted;
      } else {
        const std::size_t seen = acknowledged_;
        wait([&] { return acknowledged_ != seen; });
      }
    }
    await_ping();
  }
  void receive_bulk(std::byte* target) override {
    target_ = target;
    awaited_ += kBulkSlices;
    wait([this] { return landed_ >= awaited_; });
    target_ = ping_;
    send_ping();
  }

 private:
  template <typename Condition>
  void wait(const Condition& is_met) {
    while (!is_met()) {
      if (transport_.progress(*this) || !sleeps_ || !transport_.prepare_sleep()) continue;
      pollfd waiting{transport_.descriptor(), POLLIN, 0};
      poll(&waiting, 1, -1);
      transport_.end_sleep(true);
    }
  }
  void on_up(Endpoint&) override {}
  void on_down(Endpoint&, const Status& why) override { die(why.message()); }
  Landing on_slice(Endpoint&, const SliceHeader&) override {
    return {Landing::How::kInto, target_};
  }
  void on_landed(Endpoint&, const SliceHeader&) override { ++landed_; }
  void on_bytes(Endpoint&, const SliceHeader&, std::uint32_t, std::span<const std::byte>) override {
  }
  void on_acknowledged(Endpoint&, const Acknowledgement& done) override {
    acknowledged_ += done.cookie;
  }
  void on_control(Endpoint&, std::span<const std::byte>) override {}

  Transport& transport_;
  bool sleeps_;
  Endpoint* endpoint_ = nullptr;
  std::byte ping_[8] = {};
  std::byte* target_ = ping_;
  std::size_t awaited_ = 0;
  std::size_t landed_ = 0;
  std::size_t acknowledged_ = 0;  // bulk slices
};

enum class Work { kPingPong, kBulk };

// Both ends call it; `bytes` is slice memory of the end.
void do_work(Work work, int rank, End& end, std::byte* bytes) {
  if (work == Work::kBulk) {
    rank == 0 ? end.send_bulk(bytes) : end.receive_bulk(bytes);
    return;
  }
  for (int i = 0; i < kPings; ++i) {
    if (rank == 0) end.send_ping();
    end.await_ping();
    if (rank == 1) end.send_ping();
  }
}

struct Row {
  const char* name;
  Work work;
  bool is_rail;
  bool sleeps;
  std::vector<Cost> costs{};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const Row& row) {
  std::vector<double> walls, sender, receiver;
  for (const Cost& cost : row.costs) {
    const double per_byte = row.work == Work::kBulk ? 1e3 / (kBulkBytes / 1e9) : 1e6 / kPings;
    walls.push_back(row.work == Work::kBulk ? kBulkBytes / 1e6 / cost.wall_s
                                            : cost.wall_s * 1e6 / kPings / 2);
    sender.push_back(cost.cpu_s[0] * per_byte);
    receiver.push_back(cost.cpu_s[1] * per_byte);
  }
  const bool is_bulk = row.work == Work::kBulk;
  std::printf("%-28s %10.2f %-11s cpu %8.2f %8.2f %s\n", row.name, median(walls),
              is_bulk ? "MB/s" : "us one way", median(sender), median(receiver),
              is_bulk ? "ms/GB" : "us/round");
}

int run(const std::array<Host, 2>& hosts, int repeats) {
  std::vector<Row> rows = {{"8 B, spinning, plain", Work::kPingPong, false, false},
                           {"8 B, spinning, rail", Work::kPingPong, true, false},
                           {"8 B, asleep, plain", Work::kPingPong, false, true},
                           {"8 B, asleep, rail", Work::kPingPong, true, true},
                           {"bulk, asleep, plain", Work::kBulk, false, true},
                           {"bulk, asleep, rail", Work::kBulk, true, true}};
  for (Row& row : rows) row.costs.resize(static_cast<std::size_t>(repeats));
  std::barrier both(2);
  std::array<std::string, 2> addresses;
  tcp::SocketAddress plain_address;
  const auto play = [&](int rank) {
    enter(hosts[static_cast<std::size_t>(rank)]);
    const Host& host = hosts[static_cast<std::size_t>(rank)];
    const tcp::SocketPlace place{host.device,
                                 tcp::SocketAddress::parse(host.ip, host.device).value()};
    Rail rail;
    rail.name = rail.device = host.device;
    rail.address = host.ip;
    TransportContext context;
    context.rank = rank;
    context.rank_count = 2;
    context.key = std::string(32, 'k');
    auto opened = open_tcp(rail, context, {}, silent_logger());
    if (!opened.is_ok()) die(opened.status().message());
    Transport& transport = *opened.value();
    addresses[static_cast<std::size_t>(rank)] = transport.address();
    tcp::Listener listener;
    if (rank == 0) {
      listener = tcp::listen_at(place).value();
      plain_address = listener.address;
    }
    both.arrive_and_wait();
    RailEnd rail_end(transport, false);
    rail_end.meet(1 - rank, addresses[static_cast<std::size_t>(1 - rank)]);
    tcp::Descriptor fd;
    if (rank == 1) {
      fd = std::move(tcp::dial(place, plain_address).value());
      pollfd waiting{fd.get(), POLLOUT, 0};
      poll(&waiting, 1, -1);
    } else {
      pollfd waiting{listener.fd.get(), POLLIN, 0};
      poll(&waiting, 1, -1);
      fd = tcp::Descriptor(accept(listener.fd.get(), nullptr, nullptr));
    }
    std::vector<std::byte> bytes(kSliceBytes, std::byte{1});
    for (int repeat = -1; repeat < repeats; ++repeat) {  // the first round only warms up
      for (Row& row : rows) {
        PlainEnd plain_end(fd.get(), row.sleeps);
        rail_end.set_sleeps(row.sleeps);
        End& end = row.is_rail ? static_cast<End&>(rail_end) : plain_end;
        both.arrive_and_wait();
        const double cpu = thread_cpu_s();
        const auto start = std::chrono::steady_clock::now();
        do_work(row.work, rank, end, bytes.data());
        const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
        if (repeat < 0) continue;
        Cost& cost = row.costs[static_cast<std::size_t>(repeat)];
        cost.cpu_s[rank] = thread_cpu_s() - cpu;
        if (rank == 0) cost.wall_s = wall.count();
      }
    }
    both.arrive_and_wait();
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  for (const Row& row : rows) print(row);
  return 0;
}

}  // namespace
}  // namespace polyrail

int main(int argc, char** argv) {
  if (argc != 7 && argc != 8) {
    std::fprintf(stderr,
                 "usage: %s SPACE DEVICE ADDRESS SPACE DEVICE ADDRESS [REPEATS]\n"
                 "two hosts, each a network namespace of `ip netns` (- for the present one), a "
                 "device and an address of it\n",
                 argv[0]);
    return 2;
  }
  return polyrail::run({{{argv[1], argv[2], argv[3]}, {argv[4], argv[5], argv[6]}}},
                       argc == 8 ? std::atoi(argv[7]) : 5);
}
