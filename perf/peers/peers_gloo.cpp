// Gloo's ring all-reduce in the shared loop. A Gloo context has one device; several rails are used
// by hand: a context and a thread per rail, each with a fixed share of the elements.
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <CLI/CLI.hpp>

#include "perf/peers/sweep.hpp"

namespace {

// One rail: its context, and the thread that runs this rail's share of a call.
class RailThread {
 public:
  RailThread(int rank, int rank_count, const std::string& device, gloo::rendezvous::Store& store)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, rank_count)) {
    gloo::transport::tcp::attr attributes;
    attributes.iface = device;
    gloo::rendezvous::PrefixStore own_store(device, store);
    std::shared_ptr<gloo::transport::Device> made = gloo::transport::tcp::CreateDevice(attributes);
    context_->connectFullMesh(own_store, made);
    thread_ = std::thread([this] { serve(); });
  }
  RailThread(const RailThread&) = delete;
  RailThread& operator=(const RailThread&) = delete;
  ~RailThread() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // In the caller's thread.
  void all_reduce(const float* input, float* output, std::size_t count) {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setInput(const_cast<float*>(input), count);  // Gloo's signature; it only reads
    options.setOutput(output, count);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    options.setTag(next_tag_++ % 1'000'000);
    gloo::allreduce(options);
  }

  // In the rail's thread, until wait() gives the outcome.
  void start(const float* input, float* output, std::size_t count) {
    {
      const std::lock_guard lock(mutex_);
      input_ = input;
      output_ = output;
      count_ = count;
      is_working_ = true;
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_working_; });
    if (!failure_.empty()) throw std::runtime_error(failure_);
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return is_working_ || is_ending_; });
      if (is_ending_) return;
      lock.unlock();
      std::string failure;
      try {
        all_reduce(input_, output_, count_);
      } catch (const std::exception& error) {
        failure = error.what();
      }
      lock.lock();
      failure_ = failure;
      is_working_ = false;
      changed_.notify_all();
    }
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::uint32_t next_tag_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const float* input_ = nullptr;
  float* output_ = nullptr;
  std::size_t count_ = 0;
  bool is_working_ = false;
  bool is_ending_ = false;
  std::string failure_;
};

// The elements of each rail: shares of the count, none below what every rank can take part in.
std::vector<std::size_t> split(std::size_t count, const std::vector<double>& shares, int ranks) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::size_t> parts(shares.size(), 0);
  std::size_t left = count;
  for (std::size_t rail = shares.size() - 1; rail > 0; --rail) {
    const auto part =
        static_cast<std::size_t>(static_cast<double>(count) * shares[rail] / sum) / 16 * 16;
    if (part < static_cast<std::size_t>(16 * ranks)) continue;
    parts[rail] = part;
    left -= part;
  }
  parts[0] = left;
  return parts;
}

int run(int argc, char** argv) {
  CLI::App app("All-reduce by Gloo; ranks from RANK and WORLD_SIZE");
  peers::SweepOptions options;
  peers::add_sweep_options(app, options);
  std::string store_path;
  std::vector<std::string> devices;
  std::vector<double> shares;
  app.add_option("--store", store_path, "An empty directory that all ranks see")->required();
  app.add_option("--devices", devices, "Interfaces, the fastest first")->delimiter(',')->required();
  app.add_option("--shares", shares, "What each device gets, in any unit")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  if (shares.empty()) shares.assign(devices.size(), 1.0);
  if (shares.size() != devices.size()) throw std::runtime_error("--shares: one for each device");

  peers::Peer peer;
  peer.rank = peers::environment_number("RANK", 0);
  peer.rank_count = peers::environment_number("WORLD_SIZE", 1);
  gloo::rendezvous::FileStore store(store_path);
  std::vector<std::unique_ptr<RailThread>> rails;
  for (const std::string& device : devices) {
    rails.push_back(std::make_unique<RailThread>(peer.rank, peer.rank_count, device, store));
  }
  peer.all_reduce = [&](const float* input, float* output, std::size_t count) {
    const std::vector<std::size_t> parts = split(count, shares, peer.rank_count);
    std::size_t offset = parts[0];
    for (std::size_t rail = 1; rail < rails.size(); ++rail) {
      if (parts[rail] == 0) continue;
      rails[rail]->start(input + offset, output + offset, parts[rail]);
      offset += parts[rail];
    }
    rails[0]->all_reduce(input, output, parts[0]);
    for (std::size_t rail = 1; rail < rails.size(); ++rail) {
      if (parts[rail] != 0) rails[rail]->wait();
    }
  };
  return peers::run_sweep(peer, options);
}

}  // namespace

int main(int argc, char** argv) {
  return peers::guarded_main("peers_gloo", [&] { return run(argc, argv); });
}
