// join_mpi: joins the ranks of an MPI communicator. Header only, so that the library itself needs
// no MPI; compile and link with MPI::MPI_C or with mpicxx.
#pragma once

// Without MPI's own C++ bindings, which left the standard long ago and would need another library.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <polyrail/bootstrap.hpp>

namespace polyrail {

namespace mpi_detail {

inline Status failure(const char* attempt, int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  return {StatusCode::kSystemError, std::string(attempt) + ": " + text.data()};
}

// What rank 0 hands round: the id, or why there is none.
struct Handout {
  std::array<std::uint8_t, UniqueId::kBytes> id{};
  std::uint8_t code = 0;
  std::array<char, 1023> text{};
};

inline Handout make_handout(const Options& options) {
  Handout handout;
  const Result<UniqueId> id = make_unique_id(options);
  const auto bytes = id.is_ok() ? id.value().to_bytes() : id.status();
  if (bytes.is_ok()) {
    handout.id = bytes.value();
    return handout;
  }
  handout.code = static_cast<std::uint8_t>(bytes.status().code());
  const std::string message = bytes.status().message();
  message.copy(handout.text.data(), handout.text.size() - 1);
  return handout;
}

}  // namespace mpi_detail

// Collective over comm, after MPI_Init: MPI hands the unique id round, and with it the key; after
// that MPI is not used. Works wherever MPI does, under mpirun as under srun.
inline Result<std::unique_ptr<Bootstrap>> join_mpi(MPI_Comm comm, const Options& options) {
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  if (is_initialized == 0) {
    return Status(StatusCode::kInvalidUsage, "join_mpi was called before MPI_Init");
  }
  int rank = 0;
  int rank_count = 0;
  if (const int error = MPI_Comm_rank(comm, &rank); error != MPI_SUCCESS) {
    return mpi_detail::failure("MPI_Comm_rank", error);
  }
  if (const int error = MPI_Comm_size(comm, &rank_count); error != MPI_SUCCESS) {
    return mpi_detail::failure("MPI_Comm_size", error);
  }
  mpi_detail::Handout handout;
  if (rank == 0) handout = mpi_detail::make_handout(options);
  if (const int error = MPI_Bcast(&handout, sizeof(handout), MPI_BYTE, 0, comm);
      error != MPI_SUCCESS) {
    return mpi_detail::failure("MPI_Bcast of the unique id", error);
  }
  if (handout.code != 0) {
    return Status(static_cast<StatusCode>(handout.code),
                  "rank 0 could not make a unique id: " + std::string(handout.text.data()));
  }
  const Result<UniqueId> id = UniqueId::from_bytes(handout.id.data(), handout.id.size());
  if (!id.is_ok()) return id.status();
  return join(id.value(), rank, rank_count, options);
}

}  // namespace polyrail
