// MPI's collectives in the shared loop; built once against Open MPI and once against MPICH.
#include <mpi.h>

#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>

#include "perf/peers/sweep.hpp"

namespace {

void must(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(what) + ": " + text);
}

// With MPI's own names for what peers::Collective lists, besides all-reduce.
void call_other(peers::Collective collective, const float* input, float* output,
                std::size_t elements) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const int count = static_cast<int>(elements);
  constexpr int kRoot = 0;
  switch (collective) {
    case peers::Collective::kAllReduce:
      throw std::runtime_error("all_reduce has a call of its own");
    case peers::Collective::kAllGather:
      must(MPI_Allgather(input, count, MPI_FLOAT, output, count, MPI_FLOAT, world),
           "MPI_Allgather");
      break;
    case peers::Collective::kReduceScatter:
      must(MPI_Reduce_scatter_block(input, output, count, MPI_FLOAT, MPI_SUM, world),
           "MPI_Reduce_scatter_block");
      break;
    case peers::Collective::kBroadcast:
      must(MPI_Bcast(output, count, MPI_FLOAT, kRoot, world), "MPI_Bcast");
      break;
    case peers::Collective::kReduce:
      must(MPI_Reduce(input, output, count, MPI_FLOAT, MPI_SUM, kRoot, world), "MPI_Reduce");
      break;
    case peers::Collective::kAllToAll:
      must(MPI_Alltoall(input, count, MPI_FLOAT, output, count, MPI_FLOAT, world), "MPI_Alltoall");
      break;
    case peers::Collective::kGather:
      must(MPI_Gather(input, count, MPI_FLOAT, output, count, MPI_FLOAT, kRoot, world),
           "MPI_Gather");
      break;
    case peers::Collective::kScatter:
      must(MPI_Scatter(input, count, MPI_FLOAT, output, count, MPI_FLOAT, kRoot, world),
           "MPI_Scatter");
      break;
  }
}

int run(int argc, char** argv) {
  CLI::App app("Collectives by MPI");
  peers::SweepOptions options;
  peers::add_sweep_options(app, options);
  CLI11_PARSE(app, argc, argv);

  peers::Peer peer;
  must(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  must(MPI_Comm_rank(MPI_COMM_WORLD, &peer.rank), "MPI_Comm_rank");
  must(MPI_Comm_size(MPI_COMM_WORLD, &peer.rank_count), "MPI_Comm_size");
  peer.all_reduce = [](const float* input, float* output, std::size_t count) {
    must(MPI_Allreduce(input, output, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
         "MPI_Allreduce");
  };
  peer.other = call_other;
  return peers::run_sweep(peer, options);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = peers::guarded_main("peers_mpi", [&] { return run(argc, argv); });
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
