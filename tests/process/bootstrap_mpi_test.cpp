// join_mpi under mpirun: every rank gathers, and the communicator may be a part of the world.
#include <cstdio>
#include <string>

#include <polyrail/mpi.hpp>

namespace {

bool gathers(MPI_Comm comm, const polyrail::Options& options) {
  int rank = 0;
  int rank_count = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &rank_count);
  const auto joined = polyrail::join_mpi(comm, options);
  if (!joined.is_ok()) {
    std::printf("rank %d: %s\n", rank, joined.status().message().c_str());
    return false;
  }
  if (joined.value()->rank() != rank || joined.value()->rank_count() != rank_count) return false;
  const auto all = joined.value()->all_gather("mpi", std::to_string(rank));
  if (!all.is_ok() || static_cast<int>(all.value().size()) != rank_count) return false;
  for (int other = 0; other < rank_count; ++other) {
    if (all.value()[other] != std::to_string(other)) return false;
  }
  return true;
}

// Rank 0 cannot make an id, and every rank hears why.
bool tells_the_cause(polyrail::Options options) {
  options.interfaces = "nosuchinterface";
  const auto joined = polyrail::join_mpi(MPI_COMM_WORLD, options);
  return joined.status().message().find("nosuchinterface") != std::string::npos;
}

}  // namespace

int main(int argc, char** argv) {
  const polyrail::Options options;
  const bool is_early_refused = !polyrail::join_mpi(MPI_COMM_WORLD, options).is_ok();
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : 1, -rank, &part);
  const bool passes = is_early_refused && gathers(MPI_COMM_WORLD, options) &&
                      gathers(part, options) && tells_the_cause(options);
  MPI_Comm_free(&part);
  MPI_Finalize();
  if (!passes) std::printf("rank %d failed\n", rank);
  return passes ? 0 : 1;
}
