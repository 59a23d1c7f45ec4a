// Communicator: a group of ranks that run collectives together. The C++ API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <polyrail/bootstrap.hpp>
#include <polyrail/call.hpp>
#include <polyrail/message.hpp>
#include <polyrail/options.hpp>
#include <polyrail/status.hpp>
#include <polyrail/types.hpp>
#include <polyrail/window.hpp>
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

// Threads: calls on one communicator must not overlap, except abort() and the methods of Work and
// Window; several communicators are independent of each other. Collectives are started in the same
// order on every rank. Ends with its destructor, which waits until peers have taken what was sent
// and, for a moment, until they end as well: who drives several ranks ends each on a thread of its
// own.
class Communicator {
 public:
  // Collective over all ranks of the bootstrap: finds, connects and measures the rails.
  static Result<std::unique_ptr<Communicator>> create(std::unique_ptr<Bootstrap> bootstrap,
                                                      const Options& options);
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int rank_count() const = 0;

  // Runs a collective; blocks until this rank's part of it is done. Ranks that do not agree on the
  // call all fail with both calls in the message.
  virtual Status run(const Call& call) = 0;
  // The same without blocking. Buffers belong to the operation until the Work is done; `call` and
  // the counts in it are copied.
  virtual Work start(const Call& call) = 0;
  // The same; takes its place in the communicator's order now, but begins only when the works in
  // `after`, of any communicators, are done. If one of them failed, this communicator fails with
  // its status. Cannot deadlock if each communicator's calls, and those that follow each other,
  // are started in the same order on all ranks.
  virtual Work start(const Call& call, std::span<const Work> after) = 0;
  // Several all-reduces as one operation, for the latency of one: fits_together() of fuse.hpp must
  // hold for each and the first. All ranks fuse the same calls. Buffers are copied in and out.
  virtual Work start_fused(std::span<const Call> calls, std::span<const Work> after) = 0;
  // Whether the arguments are right; starts nothing. kInvalidArgument if not.
  virtual Status check(const Call& call) = 0;
  virtual Status check(const Message& message) const = 0;

  // The collectives, blocking; call.hpp says what they do and which buffers they take.
  Status all_reduce(const void* input, void* output, std::uint64_t count, DataType type,
                    const Reduction& reduction) {
    return run(Call::all_reduce(input, output, count, type, reduction));
  }
  Work all_reduce_async(const void* input, void* output, std::uint64_t count, DataType type,
                        const Reduction& reduction) {
    return start(Call::all_reduce(input, output, count, type, reduction));
  }
  Status reduce(const void* input, void* output, std::uint64_t count, DataType type,
                const Reduction& reduction, int root) {
    return run(Call::reduce(input, output, count, type, reduction, root));
  }
  Status broadcast(const void* input, void* output, std::uint64_t count, DataType type, int root) {
    return run(Call::broadcast(input, output, count, type, root));
  }
  Status reduce_scatter(const void* input, void* output, std::uint64_t part_count, DataType type,
                        const Reduction& reduction) {
    return run(Call::reduce_scatter(input, output, part_count, type, reduction));
  }
  Status all_gather(const void* input, void* output, std::uint64_t part_count, DataType type) {
    return run(Call::all_gather(input, output, part_count, type));
  }
  Status all_to_all(const void* input, void* output, std::uint64_t part_count, DataType type) {
    return run(Call::all_to_all(input, output, part_count, type));
  }
  Status gather(const void* input, void* output, std::uint64_t part_count, DataType type,
                int root) {
    return run(Call::gather(input, output, part_count, type, root));
  }
  Status scatter(const void* input, void* output, std::uint64_t part_count, DataType type,
                 int root) {
    return run(Call::scatter(input, output, part_count, type, root));
  }
  Status scan(const void* input, void* output, std::uint64_t count, DataType type,
              const Reduction& reduction) {
    return run(Call::scan(input, output, count, type, reduction));
  }
  Status exclusive_scan(const void* input, void* output, std::uint64_t count, DataType type,
                        const Reduction& reduction) {
    return run(Call::exclusive_scan(input, output, count, type, reduction));
  }
  Status barrier() { return run(Call::barrier()); }

  // The uneven forms.
  Status reduce_scatter_v(const void* input, void* output, std::span<const std::uint64_t> counts,
                          DataType type, const Reduction& reduction) {
    return run(Call::reduce_scatter_v(input, output, counts, type, reduction));
  }
  Status all_gather_v(const void* input, void* output, std::span<const std::uint64_t> counts,
                      DataType type) {
    return run(Call::all_gather_v(input, output, counts, type));
  }
  Status all_to_all_v(const void* input, std::span<const std::uint64_t> send_counts, void* output,
                      std::span<const std::uint64_t> receive_counts, DataType type) {
    return run(Call::all_to_all_v(input, send_counts, output, receive_counts, type));
  }
  Status gather_v(const void* input, std::uint64_t own_count, void* output,
                  std::span<const std::uint64_t> counts, DataType type, int root) {
    return run(Call::gather_v(input, own_count, output, counts, type, root));
  }
  Status scatter_v(const void* input, std::span<const std::uint64_t> counts, void* output,
                   std::uint64_t own_count, DataType type, int root) {
    return run(Call::scatter_v(input, counts, output, own_count, type, root));
  }

  // The same over spans; sizes that do not fit are errors.
  template <typename T>
  Status all_reduce(std::span<const T> input, std::span<T> output, const Reduction& reduction) {
    if (input.size() != output.size()) return size_error("all_reduce", input.size(), output.size());
    return all_reduce(input.data(), output.data(), input.size(), DataTypeOf<T>::value, reduction);
  }
  template <typename T>
  Status all_reduce(std::span<T> in_place, const Reduction& reduction) {
    return all_reduce(in_place.data(), in_place.data(), in_place.size(), DataTypeOf<T>::value,
                      reduction);
  }
  template <typename T>
  Status reduce(std::span<const T> input, std::span<T> output, const Reduction& reduction,
                int root) {
    if (rank() == root && input.size() != output.size()) {
      return size_error("reduce", input.size(), output.size());
    }
    return reduce(input.data(), output.data(), input.size(), DataTypeOf<T>::value, reduction, root);
  }
  template <typename T>
  Status broadcast(std::span<T> in_place, int root) {
    return broadcast(in_place.data(), in_place.data(), in_place.size(), DataTypeOf<T>::value, root);
  }
  template <typename T>
  Status reduce_scatter(std::span<const T> input, std::span<T> output, const Reduction& reduction) {
    if (input.size() != output.size() * parts()) {
      return size_error("reduce_scatter", input.size(), output.size());
    }
    return reduce_scatter(input.data(), output.data(), output.size(), DataTypeOf<T>::value,
                          reduction);
  }
  template <typename T>
  Status all_gather(std::span<const T> input, std::span<T> output) {
    if (output.size() != input.size() * parts()) {
      return size_error("all_gather", input.size(), output.size());
    }
    return all_gather(input.data(), output.data(), input.size(), DataTypeOf<T>::value);
  }
  template <typename T>
  Status all_to_all(std::span<const T> input, std::span<T> output) {
    if (input.size() != output.size() || input.size() % parts() != 0) {
      return size_error("all_to_all", input.size(), output.size());
    }
    return all_to_all(input.data(), output.data(), input.size() / parts(), DataTypeOf<T>::value);
  }

  // New communicators of some of this one's ranks. Collective over all ranks of this one: each gets
  // a communicator of the ranks with its color, numbered by key, then by their ranks here; null
  // with kNoColor. A failure, if not of one color's ranks alone, is the same on all ranks. Blocks
  // like create(), at most the start-up deadline for a rank that does not come.
  static constexpr int kNoColor = -1;
  virtual Result<std::unique_ptr<Communicator>> split(int color, int key,
                                                      const Options& options) = 0;
  // With the same ranks and options; independent of this one from then on.
  virtual Result<std::unique_ptr<Communicator>> dup() = 0;
  // Messages between two ranks, started together; done when all of them are. A send is done when
  // its bytes may change: they have been copied, or the receiver has them.
  //
  // Messages run beside collectives and beside each other. One whose receive is there first lands
  // in place. Of others, those of up to 128 KiB are taken into memory of the receiver, 64 MiB for
  // all of its peers together; longer ones, and those that find no room, stay with the sender until
  // they are received, so that a blocking send then waits for its receive. No message stands in the
  // way of what follows it. A collective can: what a rank has begun to send for a collective that
  // the other has not begun is passed only up to 16 MiB. Two ranks that are further apart should
  // have messages and collectives between them in compatible orders.
  virtual Status run(std::span<const Message> messages) = 0;
  Work start(std::span<const Message> messages) { return start(messages, {}); }
  // The same once the works in `after` are done, as for calls; what was started later and waits for
  // nothing may overtake it.
  virtual Work start(std::span<const Message> messages, std::span<const Work> after) = 0;

  Status send(const void* data, std::uint64_t count, DataType type, int peer,
              std::uint32_t tag = 0) {
    const Message message = Message::send(data, count, type, peer, tag);
    return run(std::span(&message, 1));
  }
  Work send_async(const void* data, std::uint64_t count, DataType type, int peer,
                  std::uint32_t tag = 0) {
    const Message message = Message::send(data, count, type, peer, tag);
    return start(std::span(&message, 1));
  }
  Status receive(void* data, std::uint64_t count, DataType type, int peer, std::uint32_t tag = 0) {
    const Message message = Message::receive(data, count, type, peer, tag);
    return run(std::span(&message, 1));
  }
  Work receive_async(void* data, std::uint64_t count, DataType type, int peer,
                     std::uint32_t tag = 0) {
    const Message message = Message::receive(data, count, type, peer, tag);
    return start(std::span(&message, 1));
  }
  // Both at once; the buffers do not overlap.
  Status send_receive(const void* sent, std::uint64_t sent_count, int to, void* received,
                      std::uint64_t received_count, int from, DataType type,
                      std::uint32_t tag = 0) {
    const Message messages[] = {Message::receive(received, received_count, type, from, tag),
                                Message::send(sent, sent_count, type, to, tag)};
    return run(std::span(messages));
  }

  // What two ranks do with each other, others taking no part; both call it. Several pairs at once
  // are fine, and, of the asynchronous forms, several of a rank, started in any order. Calls of the
  // same two ranks go together in their order.
  virtual Status exchange(const void* send, void* receive, std::uint64_t count, DataType type,
                          int peer) = 0;
  virtual Work exchange_async(const void* send, void* receive, std::uint64_t count, DataType type,
                              int peer) = 0;
  // data = (data of the lower rank + data of the higher) / 2, the same bits on both. Floating-point
  // types.
  virtual Status pairwise_average(void* data, std::uint64_t count, DataType type, int peer) = 0;
  virtual Work pairwise_average_async(void* data, std::uint64_t count, DataType type, int peer) = 0;

  // Collective over all ranks: see window.hpp. Ranks that do not agree on the sizes all fail.
  virtual Result<std::unique_ptr<Window>> create_window(std::uint64_t slot_count,
                                                        std::uint64_t slot_bytes) = 0;

  template <typename T>
  Status gather(std::span<const T> input, std::span<T> output, int root) {
    if (rank() == root && output.size() != input.size() * parts()) {
      return size_error("gather", input.size(), output.size());
    }
    return gather(input.data(), output.data(), input.size(), DataTypeOf<T>::value, root);
  }
  template <typename T>
  Status scatter(std::span<const T> input, std::span<T> output, int root) {
    if (rank() == root && input.size() != output.size() * parts()) {
      return size_error("scatter", input.size(), output.size());
    }
    return scatter(input.data(), output.data(), output.size(), DataTypeOf<T>::value, root);
  }
  template <typename T>
  Status scan(std::span<const T> input, std::span<T> output, const Reduction& reduction) {
    if (input.size() != output.size()) return size_error("scan", input.size(), output.size());
    return scan(input.data(), output.data(), input.size(), DataTypeOf<T>::value, reduction);
  }
  template <typename T>
  Status send(std::span<const T> data, int peer, std::uint32_t tag = 0) {
    return send(data.data(), data.size(), DataTypeOf<T>::value, peer, tag);
  }
  template <typename T>
  Status receive(std::span<T> data, int peer, std::uint32_t tag = 0) {
    return receive(data.data(), data.size(), DataTypeOf<T>::value, peer, tag);
  }

  // First failure of this communicator, kOk if none. Any thread.
  virtual Status async_error() const = 0;
  // Makes all unfinished and later operations fail with kAborted. Any thread, returns at once.
  virtual void abort() = 0;

  // The rails of this rank's host. Waits for operations under way.
  virtual std::vector<RailReport> rails() const = 0;
  // Least time this call can take on the measured topology, in us; 0: not known.
  virtual double limit_us(const Call& call) = 0;
  // The plan in use for such a call and why it was chosen, as text.
  virtual std::string explain(const Call& call) = 0;

 protected:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

 private:
  std::size_t parts() const { return static_cast<std::size_t>(rank_count()); }
  Status size_error(const char* collective, std::size_t input, std::size_t output) const {
    return {StatusCode::kInvalidArgument,
            std::string(collective) + " on rank " + std::to_string(rank()) + ": an input of " +
                std::to_string(input) + " elements does not fit an output of " +
                std::to_string(output)};
  }
};

// Memory that ranks of the same host can reach without a copy. Zeroed, page-aligned; released with
// mem_free, not free(). Any thread.
Result<void*> mem_alloc(std::size_t bytes);
Status mem_free(void* memory);

}  // namespace polyrail
