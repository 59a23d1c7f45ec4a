// Polyrail's public C API in the shared loop: told nothing but who takes part.
#include <polyrail/polyrail.h>

#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>

#include "perf/peers/sweep.hpp"

namespace {

void must(polyrailResult_t result, polyrailComm_t comm, const char* what) {
  if (result == polyrailSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + polyrailGetErrorString(result) + ": " +
                           polyrailGetLastError(comm));
}

int run(int argc, char** argv) {
  CLI::App app("All-reduce by Polyrail; ranks and key from the environment");
  peers::SweepOptions options;
  peers::add_sweep_options(app, options);
  bool is_shared = false;
  app.add_flag("--shared", is_shared, "Buffers from polyrailMemAlloc");
  CLI11_PARSE(app, argc, argv);

  polyrailComm_t comm = nullptr;
  must(polyrailCommInitEnv(&comm, nullptr), nullptr, "polyrailCommInitEnv");
  peers::Peer peer;
  must(polyrailCommUserRank(comm, &peer.rank), comm, "polyrailCommUserRank");
  must(polyrailCommCount(comm, &peer.rank_count), comm, "polyrailCommCount");
  peer.all_reduce = [comm](const float* input, float* output, std::size_t count) {
    must(polyrailAllReduce(input, output, count, polyrailFloat, polyrailSum, comm, nullptr), comm,
         "polyrailAllReduce");
  };
  if (is_shared) {
    peer.allocate = [](std::size_t bytes) {
      void* memory = nullptr;
      must(polyrailMemAlloc(&memory, bytes), nullptr, "polyrailMemAlloc");
      return static_cast<float*>(memory);
    };
  }
  const int status = peers::run_sweep(peer, options);
  must(polyrailCommDestroy(comm), nullptr, "polyrailCommDestroy");
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  return peers::guarded_main("peers_polyrail", [&] { return run(argc, argv); });
}
