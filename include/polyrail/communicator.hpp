// Communicator: a group of ranks that run collectives together. The C++ API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <polyrail/bootstrap.hpp>
#include <polyrail/options.hpp>
#include <polyrail/status.hpp>
#include <polyrail/types.hpp>
#include <polyrail/work.hpp>

namespace polyrail {

// What a communicator found and measured on one of its rails.
struct RailReport {
  std::string name;  // "rail0"
  std::string kind;  // "tcp"
  std::string device;
  std::string address;
  int plane = -1;
  double latency_us = 0;
  double bytes_per_s = 0;          // measured at start-up, one direction, all ranks of the host
  double current_bytes_per_s = 0;  // the same, corrected by this rank's traffic to its peers
  std::uint64_t bytes_sent = 0;    // payload of this rank, acknowledged by its peers
};

// Threads: calls on one communicator must not overlap, except abort() and Work's methods; several
// communicators are independent of each other. Collectives are started in the same order on every
// rank. Ends with its destructor, which waits until peers have taken what was sent.
class Communicator {
 public:
  // Collective over all ranks of the bootstrap: finds, connects and measures the rails.
  static Result<std::unique_ptr<Communicator>> create(std::unique_ptr<Bootstrap> bootstrap,
                                                      const Options& options);
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int rank_count() const = 0;

  // output = op over all ranks' inputs, element by element; count elements of type. input may equal
  // output (in place, then on all ranks), other overlap is an error. Blocks until this rank's
  // result is there.
  virtual Status all_reduce(const void* input, void* output, std::uint64_t count, DataType type,
                            ReduceOp op) = 0;
  // The same without blocking. Buffers belong to the operation until the Work is done.
  virtual Work all_reduce_async(const void* input, void* output, std::uint64_t count, DataType type,
                                ReduceOp op) = 0;

  // First failure of this communicator, kOk if none. Any thread.
  virtual Status async_error() const = 0;
  // Makes all unfinished and later operations fail with kAborted. Any thread, returns at once.
  virtual void abort() = 0;

  // The rails of this rank's host. Waits for operations under way.
  virtual std::vector<RailReport> rails() const = 0;
  // Least time this all-reduce can take on the measured topology, in us; 0: not known.
  virtual double limit_us(std::uint64_t count, DataType type, ReduceOp op, bool is_in_place) = 0;
  // The plan in use for such a call and why it was chosen, as text.
  virtual std::string explain(std::uint64_t count, DataType type, ReduceOp op,
                              bool is_in_place) = 0;

 protected:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
};

// Memory that ranks of the same host can reach without a copy. Zeroed, page-aligned; released with
// mem_free, not free(). Any thread.
Result<void*> mem_alloc(std::size_t bytes);
Status mem_free(void* memory);

}  // namespace polyrail
