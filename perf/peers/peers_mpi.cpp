// MPI_Allreduce in the shared loop; built once against Open MPI and once against MPICH.
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

int run(int argc, char** argv) {
  CLI::App app("All-reduce by MPI");
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
