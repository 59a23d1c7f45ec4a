// How a perf test gets its ranks: threads of this process, or one process each.
#pragma once

#include <functional>

#include <polyrail/polyrail.hpp>

namespace polyrail::perf {

// Runs body(communicator) for each rank of this process; `thread_count` > 1: ranks are threads. One
// rank per process otherwise: from mpirun (if built with MPI), from the environment (torchrun,
// polyrail-lab: RANK, WORLD_SIZE, ...), or a single rank. Returns the first failure.
Status run_ranks(int thread_count, const Options& options,
                 const std::function<Status(Communicator&)>& body);

}  // namespace polyrail::perf
