// Polyrail's public C++ API in the shared loop: told nothing but who takes part.
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include <polyrail/polyrail.hpp>

#include "perf/peers/sweep.hpp"

namespace {

constexpr polyrail::DataType kType = polyrail::DataType::kFloat32;
constexpr polyrail::ReduceOp kSum = polyrail::ReduceOp::kSum;

void must(const polyrail::Status& status) {
  if (!status.is_ok()) throw std::runtime_error(status.message());
}

template <typename T>
T must(polyrail::Result<T> result) {
  must(result.status());
  return std::move(result).value();
}

polyrail::Call call_of(peers::Collective collective, const float* input, float* output,
                       std::size_t count) {
  constexpr int kRoot = 0;
  switch (collective) {
    case peers::Collective::kAllReduce:
      return polyrail::Call::all_reduce(input, output, count, kType, kSum);
    case peers::Collective::kAllGather:
      return polyrail::Call::all_gather(input, output, count, kType);
    case peers::Collective::kReduceScatter:
      return polyrail::Call::reduce_scatter(input, output, count, kType, kSum);
    case peers::Collective::kBroadcast:
      return polyrail::Call::broadcast(input, output, count, kType, kRoot);
    case peers::Collective::kReduce:
      return polyrail::Call::reduce(input, output, count, kType, kSum, kRoot);
    case peers::Collective::kAllToAll:
      return polyrail::Call::all_to_all(input, output, count, kType);
    case peers::Collective::kGather:
      return polyrail::Call::gather(input, output, count, kType, kRoot);
    case peers::Collective::kScatter:
      return polyrail::Call::scatter(input, output, count, kType, kRoot);
  }
  throw std::runtime_error("unknown collective");
}

int run(int argc, char** argv) {
  CLI::App app("Collectives by Polyrail; ranks and key from the environment");
  peers::SweepOptions options;
  peers::add_sweep_options(app, options);
  bool is_shared = false;
  app.add_flag("--shared", is_shared, "Buffers from mem_alloc");
  CLI11_PARSE(app, argc, argv);

  const polyrail::Options own_options = must(polyrail::options_from_environment());
  const std::unique_ptr<polyrail::Communicator> communicator = must(polyrail::Communicator::create(
      must(polyrail::join_from_environment(own_options)), own_options));
  peers::Peer peer;
  peer.rank = communicator->rank();
  peer.rank_count = communicator->rank_count();
  peer.other = [&communicator](peers::Collective collective, const float* input, float* output,
                               std::size_t count) {
    must(communicator->run(call_of(collective, input, output, count)));
  };
  peer.all_reduce = [&peer](const float* input, float* output, std::size_t count) {
    peer.other(peers::Collective::kAllReduce, input, output, count);
  };
  if (is_shared) {
    peer.allocate = [](std::size_t bytes) {
      return static_cast<float*>(must(polyrail::mem_alloc(bytes)));
    };
  }
  return peers::run_sweep(peer, options);
}

}  // namespace

int main(int argc, char** argv) {
  return peers::guarded_main("peers_polyrail", [&] { return run(argc, argv); });
}
