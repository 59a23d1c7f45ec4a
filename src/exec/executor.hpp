// Executor: runs one bound plan on one set of buffers. Decides what may start, consumes what lands;
// how bytes travel is the link's affair.
//
// Belongs to the engine's thread. start() to done allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/exec/arithmetic.hpp"
#include "src/exec/bound_plan.hpp"
#include "src/exec/intervals.hpp"
#include "src/exec/link.hpp"

namespace polyrail {

class Executor final {
 public:
  struct Buffers {
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    std::byte* scratch = nullptr;
    std::byte* wire = nullptr;
  };

  // Makes room for a plan; the only place that allocates.
  void reserve(const BoundPlan& plan);
  // Begins; links[peer] for each peer the plan names. `header` carries operation and fingerprint.
  void start(const BoundPlan& plan, const Buffers& buffers, const Arithmetic& arithmetic,
             const SliceHeader& header, std::vector<Link*>& links);
  bool is_running() const { return plan_ != nullptr; }
  bool is_done() const { return steps_left_ == 0; }
  void finish() { plan_ = nullptr; }

  // --- arriving bytes; the caller has checked the operation and fingerprint
  // False: the header does not fit the plan (a broken promise of the peer).
  bool is_expected(int peer, const SliceHeader& header) const;
  // Of the put that raises a signal; 0 if none does.
  std::uint64_t expected_bytes(std::uint32_t signal) const;
  Landing landing(const SliceHeader& header, bool can_stream);
  void on_landed(const SliceHeader& header);
  void on_bytes(const SliceHeader& header, std::uint32_t offset_bytes,
                std::span<const std::byte> bytes);
  // --- sent bytes
  void on_put_progress(std::uint32_t step, std::uint64_t offset, std::uint64_t bytes);

  // Starts steps whose blockers are done. True if anything was done.
  bool advance();
  // Peers whose signals are still missing, as text for a deadline's report.
  std::string missing() const;

 private:
  struct SignalState {
    IntervalSet landed;
    bool is_raised = false;
  };
  struct StepState {
    std::uint32_t blockers = 0;
    bool is_ready = false;
    bool is_done = false;
    std::uint64_t bytes_done = 0;  // put: acknowledged; reduce, copy: computed
  };

  const std::byte* source_of(const Slice& slice) const;
  std::byte* target_of(const Slice& slice) const;
  void on_ready(std::uint32_t step);
  void run_put(std::uint32_t step);
  void compute(const BoundStep& step, std::uint64_t begin, std::uint64_t end,
               const std::byte* arrived);
  // What has landed is counted in bytes of the landing; the steps count bytes of the call's type.
  void consume_landed(std::uint32_t step, std::uint64_t begin, std::uint64_t end,
                      const std::byte* arrived);
  void consume(std::uint32_t step, std::uint64_t begin, std::uint64_t end,
               const std::byte* arrived);
  // Consumes what has landed of [begin, end), as far as it may be written over.
  void take(std::uint32_t step, std::uint64_t begin, std::uint64_t end);
  void raise_if_complete(std::uint32_t signal);
  void step_done(std::uint32_t step);
  bool is_streaming(const BoundSignal& signal) const;

  const BoundPlan* plan_ = nullptr;
  Buffers buffers_;
  Arithmetic arithmetic_;
  SliceHeader header_;
  std::vector<Link*>* links_ = nullptr;
  std::size_t steps_left_ = 0;
  std::vector<StepState> steps_;
  std::vector<SignalState> signals_;
  std::vector<IntervalSet> read_;     // of puts that are followed: bytes that may be written over
  std::vector<std::uint32_t> ready_;  // steps to start, a stack
};

}  // namespace polyrail
