// Engine: moves the operations of one communicator on. Owns its transports and links.
//
// Its state belongs to whichever thread holds it: the caller inside run() or wait(), or the
// engine's own thread when there is asynchronous work or a window. Operations run in the order
// submitted; one that waits for works of other engines holds up those behind it, and is woken when
// they are done. Messages run beside them.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

#include "src/base/log.hpp"
#include "src/exec/early_slices.hpp"
#include "src/exec/executor.hpp"
#include "src/exec/growing_memory.hpp"
#include "src/exec/idle.hpp"
#include "src/exec/link.hpp"
#include "src/exec/message_work.hpp"
#include "src/exec/messages.hpp"
#include "src/exec/operation.hpp"
#include "src/exec/small_calls.hpp"
#include "transports/transport.hpp"

namespace polyrail {

class Engine final : public Sink, public Link::Listener, private Messages::Host {
 public:
  // One endpoint of the network that start-up made.
  struct Joint {
    int peer = -1;
    int plane = -1;
    Endpoint* endpoint = nullptr;
    RailCaps caps;
    double latency_us = 30;
    double bytes_per_s = 1e9;
  };
  struct Setup {
    int rank = 0;
    int rank_count = 1;
    int plane_count = 0;
    std::vector<std::unique_ptr<Transport>> transports;
    std::vector<Joint> joints;
    // Joins all ranks, or there is none; the same on all ranks. A transport's.
    SmallExchange* small_exchange = nullptr;
    Options options;
    Logger logger;
  };

  static Result<std::shared_ptr<Engine>> create(Setup setup);
  ~Engine() override;

  // Runs one operation to its end; the calling thread moves the bytes. Communicator's thread.
  Status run(Operation& operation);
  // Queues an operation that a WorkState owns. Communicator's thread.
  void submit(std::shared_ptr<WorkState> work);
  // Messages to and from peers, all at once; done when all of them are. Not queued behind
  // operations. Communicator's thread, or any while there is a window.
  void start_messages(std::shared_ptr<MessageWork> work);
  Status run_messages(std::shared_ptr<MessageWork> work);
  // Peers may access it from now on, and the engine's thread sees to it; until it is removed. After
  // close() removing does nothing. Any thread.
  void add_window(std::shared_ptr<WindowMemory> window);
  void remove_window(std::uint32_t id);

  // Any thread: one round of progress if nobody else makes any.
  void poll(int depth = 0);
  // Any thread: until the operation is done.
  void wait(WorkState& work);
  // Whether nobody but poll() and wait() makes progress.
  bool is_moved_by_callers() const { return !thread_drives(); }

  // Any thread.
  void abort();
  Status failure() const;
  // Flushes, says goodbye to the peers and waits (bounded) until they took everything.
  void close();

  // Rates as the links know them now. Any thread; waits while operations are under way.
  std::vector<Link::RailState> rail_states(int peer);
  // Whether a call is so small that it needs no plan: see SmallCalls.
  bool is_small_call(const BoundPlan& plan) const {
    return small_calls_ && small_calls_->takes(plan);
  }

  // --- Sink
  void on_up(Endpoint& endpoint) override;
  void on_down(Endpoint& endpoint, const Status& why) override;
  Landing on_slice(Endpoint& from, const SliceHeader& header) override;
  void on_landed(Endpoint& from, const SliceHeader& header) override;
  void on_bytes(Endpoint& from, const SliceHeader& header, std::uint32_t offset_bytes,
                std::span<const std::byte> bytes) override;
  void on_acknowledged(Endpoint& to, const Acknowledgement& done) override;
  void on_control(Endpoint& from, std::span<const std::byte> message) override;

  // --- Link::Listener
  void on_put_progress(std::uint32_t put, std::uint64_t offset, std::uint64_t bytes) override;

 private:
  explicit Engine(Setup setup);

  enum class Control : std::uint8_t { kFailed = 1, kGoodbye = 2 };

  void take();  // waits until this thread holds the engine
  // The same if the engine's thread may hold it for good; release() follows.
  void take_from_thread();
  bool try_take();
  void release();

  void begin(Operation& operation);
  // False: there is no memory for it.
  bool scale_input(Operation& operation);
  void fail_for_memory(std::uint64_t bytes);
  Status closed_status() const;
  bool step();  // one round; true if anything happened
  bool progress();
  bool try_finish_small();
  bool fail_if_calls_differ();
  // The peer's call of the operation `number` is another than this rank's.
  void fail_for(int peer, std::uint32_t number, std::uint32_t call_kind, std::uint64_t call_count);
  void idle();
  void sleep();
  void end_current(Status status);
  void fail(
      Status why) override;  // the first failure: tells all peers; end_all() follows from step()
  void end_all();            // ends every operation with the failure
  void send_to_all(Control kind, const std::string& text);
  void flush_controls();
  // Begins the next operation, or makes it next_work_ if it must wait. False: there is none.
  bool take_next();
  bool may_begin(WorkState& work);
  // What next_work_ waits for, if the thread that waits here has to move that on.
  std::shared_ptr<WorkState> blocker() const;
  void thread_main();
  // A work that somebody waits for, and for whose sake: if an outer one ends first (by an abort),
  // nobody wants the inner one any more.
  struct Wanted {
    WorkState* work;
    const Wanted* outer;
    bool is_over() const;
    bool has(const Engine* engine) const;
  };
  void wait(const Wanted& wanted);
  std::shared_ptr<WorkState> drive(const Wanted& wanted);
  // Whether the engine's thread moves things when nobody waits.
  bool thread_drives() const {
    return is_thread_fixed_ || had_window_.load(std::memory_order_acquire);
  }
  // Whether it may be doing so now.
  bool is_thread_busy() const {
    return thread_duties_.load(std::memory_order_acquire) != 0 ||
           queued_count_.load(std::memory_order_acquire) != 0;
  }
  void start_thread();  // with queue_mutex_
  void wake();          // who sleeps in sleep(), to look at what was submitted
  bool has_submissions() const;
  bool has_business();
  void start_submitted();
  void begin_messages(std::shared_ptr<MessageWork> work, double now_us);
  void begin_deferred();
  bool fail_if_late(double now_us);  // of messages
  // How far an operation is ahead of the last one begun. Numbers have 31 bits.
  std::int32_t ahead_of(std::uint32_t operation) const {
    return static_cast<std::int32_t>((operation - last_number_) << 1) >> 1;
  }
  void deliver_early(std::uint32_t operation);
  // The peer has gone: what waits for it will not be done.
  void fail_if_waiting_for(int peer, const Status& why);

  // --- Messages::Host; fail() is above
  void discard_incoming(int peer, std::uint32_t operation) override;
  bool can_hear(int peer) const override;
  bool can_reach(int peer) const override;
  void complete(MessageWork& work, Status outcome) override;
  std::string describe_current() const;

  const int rank_;
  const int rank_count_;
  const Options options_;
  Logger logger_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<Joint> joints_;
  std::vector<std::unique_ptr<Link>> link_owners_;
  std::vector<Link*> links_;    // by peer; nullptr for this rank
  std::vector<bool> has_left_;  // by peer: said goodbye

  std::atomic<int> held_{0};
  Executor executor_;
  Messages messages_;
  EarlySlices early_;
  std::optional<SmallCalls> small_calls_;
  Operation* current_ = nullptr;
  double deadline_us_ = 0;
  double withdrawal_us_ = 0;  // after a failure: when sources are given back in any case; 0: done
  std::uint32_t last_number_ = 0;  // of the last operation begun
  // What the last operations were, by number: a peer may take one of them for something else and
  // send for it though it is over here.
  struct Begun {
    std::uint32_t call_kind = 0;
    std::uint64_t call_count = 0;
  };
  static constexpr std::uint32_t kRemembered = 16;
  std::array<Begun, kRemembered> begun_{};
  GrowingMemory scratch_;
  GrowingMemory wire_;    // scratch for elements of the wire type
  GrowingMemory scaled_;  // inputs times their factors
  IdlePolicy idle_policy_;
  bool is_waiting_ = false;
  bool is_closing_ = false;
  int epoll_fd_ = -1;
  std::shared_ptr<Waker> waker_;       // shared with works that this engine waits for
  std::vector<bool> has_ended_sleep_;  // by transport, within sleep()
  struct PendingControl {
    int peer;
    std::vector<std::byte> message;
  };
  std::vector<PendingControl> pending_controls_;

  mutable std::mutex queue_mutex_;  // guards queue_, failure_, the thread's start and stop
  std::deque<std::shared_ptr<WorkState>> queue_;
  std::vector<std::shared_ptr<MessageWork>> deferred_;   // messages that wait for other works
  std::vector<std::shared_ptr<MessageWork>> submitted_;  // not begun; guarded by queue_mutex_
  std::atomic<std::size_t> submitted_count_{0};
  const bool is_thread_fixed_;  // the option progress lets the engine's thread drive
  std::atomic<bool> had_window_{false};
  std::atomic<int> thread_duties_{0};  // messages that it moves, and windows
  std::atomic<int> wanted_{0};         // threads that want the engine from the engine's thread
  std::atomic<bool> is_asleep_{false};
  std::atomic<bool> is_closed_{false};
  bool is_thread_holding_ = false;
  std::atomic<std::size_t> queued_count_{0};
  std::shared_ptr<WorkState> current_work_;
  std::shared_ptr<WorkState> next_work_;  // taken off the queue; waits for works of other engines
  std::condition_variable queue_filled_;
  bool is_stopping_ = false;
  std::thread thread_;
  Status failure_;
  std::atomic<bool> has_failed_{false};
  std::atomic<bool> abort_requested_{false};
  std::uint32_t submitted_number_ = 0;
};

}  // namespace polyrail
