#include "perf/tools/perf_ranks.hpp"

#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#ifdef POLYRAIL_PERF_MPI
#include <polyrail/mpi.hpp>
#endif

namespace polyrail::perf {
namespace {

bool is_set(const char* name) {
  return std::getenv(name) != nullptr;
}

Status run_one(Result<std::unique_ptr<Bootstrap>> bootstrap, const Options& options,
               const std::function<Status(Communicator&)>& body) {
  if (!bootstrap.is_ok()) return bootstrap.status();
  Result<std::unique_ptr<Communicator>> communicator =
      Communicator::create(std::move(bootstrap).value(), options);
  if (!communicator.is_ok()) return communicator.status();
  return body(*communicator.value());
}

Status run_threads(int count, const Options& options,
                   const std::function<Status(Communicator&)>& body) {
  Result<std::vector<std::unique_ptr<Bootstrap>>> bootstraps = join_in_process(count, options);
  if (!bootstraps.is_ok()) return bootstraps.status();
  std::mutex mutex;
  Status failure;
  std::vector<std::thread> threads;
  for (auto& bootstrap : bootstraps.value()) {
    threads.emplace_back([&, own = std::move(bootstrap)]() mutable {
      Status status;
      try {
        status = run_one(std::move(own), options, body);
      } catch (const std::exception& error) {
        status = Status(StatusCode::kSystemError, std::string("a rank failed: ") + error.what());
      }
      const std::lock_guard lock(mutex);
      if (failure.is_ok()) failure = status;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failure;
}

}  // namespace

Status run_ranks(int thread_count, const Options& options,
                 const std::function<Status(Communicator&)>& body) {
  if (thread_count > 1) return run_threads(thread_count, options, body);
#ifdef POLYRAIL_PERF_MPI
  if (is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMI_SIZE") || is_set("PMIX_RANK")) {
    MPI_Init(nullptr, nullptr);
    const Status status = run_one(join_mpi(MPI_COMM_WORLD, options), options, body);
    if (!status.is_ok()) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return status;
  }
#endif
  if (is_set("WORLD_SIZE")) return run_one(join_from_environment(options), options, body);
  return run_threads(1, options, body);
}

}  // namespace polyrail::perf
