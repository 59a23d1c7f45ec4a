#include "src/exec/engine.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "kernels/kernels.hpp"
#include "src/base/assert.hpp"
#include "src/base/clock.hpp"

namespace polyrail {
namespace {

constexpr double kFlushLimitUs = 10e6;   // close: peers have so long to take what was sent
constexpr double kGoodbyeLimitUs = 2e6;  // close: and so long to say goodbye if they took all
constexpr double kWithdrawalLimitUs = 1e6;
constexpr int kSleepMs = 200;  // a sleeper looks at its deadline so often
constexpr int kSmallLooks = 50;

// Tells the processor that this is a spin.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Result<std::shared_ptr<Engine>> Engine::create(Setup setup) {
  std::shared_ptr<Engine> engine(new Engine(std::move(setup)));
  engine->epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (engine->epoll_fd_ < 0) {
    return Status(StatusCode::kSystemError,
                  std::string("make the engine's epoll descriptor: ") + std::strerror(errno));
  }
  Result<std::shared_ptr<Waker>> waker = Waker::create();
  if (!waker.is_ok()) return waker.status();
  engine->waker_ = std::move(waker).value();
  std::vector<int> descriptors;  // by transport, and the last to be woken
  for (const auto& transport : engine->transports_) descriptors.push_back(transport->descriptor());
  descriptors.push_back(engine->waker_->descriptor());
  engine->has_ended_sleep_.resize(descriptors.size());
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    if (descriptors[i] < 0) continue;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (epoll_ctl(engine->epoll_fd_, EPOLL_CTL_ADD, descriptors[i], &event) != 0) {
      return Status(StatusCode::kSystemError,
                    std::string("watch a transport's descriptor: ") + std::strerror(errno));
    }
  }
  return engine;
}

Engine::Engine(Setup setup)
    : rank_(setup.rank),
      rank_count_(setup.rank_count),
      options_(std::move(setup.options)),
      logger_(std::move(setup.logger)),
      transports_(std::move(setup.transports)),
      joints_(std::move(setup.joints)),
      links_(setup.rank_count, nullptr),
      has_left_(setup.rank_count, false),
      messages_(setup.rank, setup.rank_count, options_.operation_timeout_ms, links_, *this),
      idle_policy_(options_.spin_us),
      is_thread_fixed_(options_.progress != "caller") {
  for (int peer = 0; peer < rank_count_; ++peer) {
    if (peer == rank_) continue;
    link_owners_.push_back(std::make_unique<Link>(peer, setup.plane_count, *this));
    links_[peer] = link_owners_.back().get();
    links_[peer]->set_rebalancing(options_.split_by_measurement);
  }
  if (setup.small_exchange != nullptr) {
    small_calls_.emplace(*setup.small_exchange, rank_, rank_count_);
  }
  for (const Joint& joint : joints_) {
    links_[joint.peer]->add_rail(joint.plane, joint.endpoint, joint.caps, joint.latency_us,
                                 joint.bytes_per_s);
  }
}

Engine::~Engine() {
  {
    const std::lock_guard lock(queue_mutex_);
    is_stopping_ = true;
  }
  queue_filled_.notify_all();
  if (thread_.joinable()) thread_.join();
  transports_.clear();
  if (epoll_fd_ >= 0) ::close(epoll_fd_);
}

void Engine::take() {
  while (held_.exchange(1, std::memory_order_acquire) != 0) {
    held_.wait(1, std::memory_order_relaxed);
  }
}
bool Engine::try_take() {
  return held_.exchange(1, std::memory_order_acquire) == 0;
}
void Engine::release() {
  held_.store(0, std::memory_order_release);
  held_.notify_one();
}

void Engine::begin(Operation& operation) {
  PR_ASSERT(current_ == nullptr);
  current_ = &operation;
  last_number_ = operation.number;
  begun_[last_number_ % kRemembered] = {operation.plan->call_kind, operation.plan->call_count};
  if (has_failed_.load(std::memory_order_relaxed)) {
    end_current(failure());
    return;
  }
  deadline_us_ = 0;                                              // set when the first wait begins
  if (abort_requested_.load(std::memory_order_acquire)) return;  // step() ends it
  const BoundPlan& plan = *operation.plan;
  const Arithmetic arithmetic(plan.spec, operation.user);
  if (!scale_input(operation)) {
    fail_for_memory(plan.input_bytes);
    return;
  }
  if (small_calls_ && small_calls_->takes(plan)) {
    small_calls_->begin(plan, {operation.number, plan.call_kind, plan.call_count}, arithmetic,
                        operation.buffers.input);
    if (!early_.is_empty()) deliver_early(operation.number);  // the peer does not agree
    try_finish_small();
    return;
  }
  operation.buffers.scratch = scratch_.at_least(plan.scratch_bytes);
  operation.buffers.wire = wire_.at_least(plan.wire_bytes);
  if (operation.buffers.scratch == nullptr || operation.buffers.wire == nullptr) {
    fail_for_memory(plan.scratch_bytes + plan.wire_bytes);
    return;
  }
  executor_.reserve(plan);
  for (Link* link : links_) {
    if (link != nullptr) link->reserve(plan.steps.size());
  }
  SliceHeader header;
  header.operation = operation.number;
  header.call_kind = plan.call_kind;
  header.call_count = plan.call_count;
  executor_.start(plan, operation.buffers, arithmetic, header, links_);
  for (const auto& [peer, rail] : plan.expected) {
    if (Endpoint* endpoint = links_[peer]->endpoint(rail)) endpoint->expect(true);
  }
  if (!early_.is_empty()) deliver_early(operation.number);
  const double now = now_us();
  while (executor_.advance()) {
    for (Link* link : links_) {
      if (link != nullptr) link->pump(now);
    }
  }
  if (executor_.is_done()) end_current(ok());
}

bool Engine::scale_input(Operation& operation) {
  const CollectiveSpec& spec = operation.plan->spec;
  const bool has_factor = spec.op == ReduceOp::kPreMulSum || spec.op == ReduceOp::kWeightedAvg;
  if (!has_factor || !reduces(spec.collective)) return true;
  double factor = operation.factor;
  if (operation.divisor != nullptr) factor /= *operation.divisor;
  std::byte* scaled = scaled_.at_least(operation.plan->input_bytes);
  if (scaled == nullptr) return false;
  scale(spec.type, factor, operation.buffers.input, scaled,
        operation.plan->input_bytes / size_bytes(spec.type));
  operation.buffers.input = scaled;
  return true;
}

void Engine::fail_for_memory(std::uint64_t bytes) {
  fail(Status(StatusCode::kSystemError, describe_current() + ": there is no memory for " +
                                            std::to_string(bytes) + " bytes of its own"));
}

Status Engine::closed_status() const {
  return {
      StatusCode::kInvalidUsage,
      "rank " + std::to_string(rank_) + ": a message was started on a communicator that is closed"};
}

void Engine::end_current(Status status) {
  Operation* operation = current_;
  current_ = nullptr;
  if (executor_.is_running()) {
    for (const auto& [peer, rail] : operation->plan->expected) {
      if (Endpoint* endpoint = links_[peer]->endpoint(rail)) endpoint->expect(false);
    }
    executor_.finish();
  }
  if (small_calls_) small_calls_->stop();
  if (is_waiting_) {
    is_waiting_ = false;
    idle_policy_.on_wait_end(now_us());
  }
  // Keeps the operation alive until it is completed; the caller may drop it at once after.
  const std::shared_ptr<WorkState> work = std::move(current_work_);
  current_work_ = nullptr;
  if (work == nullptr) {
    operation->complete(std::move(status));
    return;
  }
  if (status.is_ok() && work->on_success) work->on_success();
  queued_count_.fetch_sub(1, std::memory_order_release);
  work->complete(std::move(status));
}

bool Engine::step() {
  if (abort_requested_.load(std::memory_order_acquire) &&
      !has_failed_.load(std::memory_order_relaxed)) {
    fail(Status(StatusCode::kAborted,
                "the communicator was aborted on rank " + std::to_string(rank_)));
    return true;
  }
  const bool is_any = submitted_count_.load(std::memory_order_acquire) != 0;
  if (is_any) start_submitted();
  if (!deferred_.empty()) begin_deferred();
  if (withdrawal_us_ > 0) {
    std::uint64_t posted = 0;
    for (Link* link : links_) posted += link != nullptr ? link->posted_count() : 0;
    if (posted == 0 || now_us() > withdrawal_us_) {
      end_all();
      return true;
    }
  }
  if (small_calls_ && small_calls_->is_running() && withdrawal_us_ == 0 && try_finish_small()) {
    return true;
  }
  if (!progress()) return is_any;
  if (is_waiting_) {
    is_waiting_ = false;
    idle_policy_.on_wait_end(now_us());
  }
  if (executor_.is_running() && withdrawal_us_ == 0 && executor_.is_done()) end_current(ok());
  return true;
}

bool Engine::try_finish_small() {
  // Looking is cheap, and what is awaited mostly comes at once.
  for (int look = 0; look < kSmallLooks; ++look) {
    if (small_calls_->try_finish(current_->buffers.output)) {
      end_current(ok());
      return true;
    }
    relax();
  }
  return false;
}

bool Engine::fail_if_calls_differ() {
  if (!small_calls_ || current_ == nullptr || withdrawal_us_ > 0) return false;
  const auto difference = small_calls_->difference(current_->number);
  if (!difference) return false;
  fail_for(difference->peer, difference->call.number, difference->call.kind,
           difference->call.count);
  return true;
}

bool Engine::progress() {
  bool is_any = false;
  for (const auto& transport : transports_) is_any |= transport->progress(*this);
  if (!pending_controls_.empty()) flush_controls();
  if (!is_any) {
    // Rails that were busy may have room again.
    bool has_work = false;
    for (Link* link : links_) has_work |= link != nullptr && link->has_work();
    if (!has_work) return false;
  }
  const double now = now_us();
  fail_if_late(now);
  do {
    for (Link* link : links_) {
      if (link != nullptr) link->pump(now);
    }
  } while (executor_.is_running() && executor_.advance());
  return is_any;
}

void Engine::idle() {
  const double now = now_us();
  if (!is_waiting_) {
    is_waiting_ = true;
    idle_policy_.on_wait_begin(now);
  }
  if (deadline_us_ == 0 && current_ != nullptr) {
    deadline_us_ = now + static_cast<double>(options_.operation_timeout_ms) * 1e3;
  }
  switch (idle_policy_.next(now)) {
    case IdlePolicy::Pass::kPause:
      relax();
      return;
    case IdlePolicy::Pass::kYield:
      sched_yield();
      idle_policy_.on_yielded(now_us() - now);
      return;
    case IdlePolicy::Pass::kSleep:
      break;
  }
  if (fail_if_calls_differ()) return;
  if (fail_if_late(now)) return;
  if (current_ != nullptr && now > deadline_us_ && withdrawal_us_ == 0) {
    fail(Status(StatusCode::kTimeout,
                describe_current() + " not done within " +
                    std::to_string(options_.operation_timeout_ms) + " ms; missing: " +
                    (executor_.is_running() ? executor_.missing() : small_calls_->missing())));
    return;
  }
  sleep();
}

void Engine::sleep() {
  bool may_sleep = true;
  int limit_ms = kSleepMs;
  std::size_t prepared = 0;
  for (; prepared < transports_.size() && may_sleep; ++prepared) {
    may_sleep = transports_[prepared]->prepare_sleep();
    if (transports_[prepared]->descriptor() < 0) limit_ms = 1;
  }
  is_asleep_.store(true, std::memory_order_seq_cst);
  if (has_submissions()) may_sleep = false;
  if (may_sleep) {
    if (deadline_us_ > 0 && current_ != nullptr) {
      const double left_ms = (deadline_us_ - now_us()) / 1e3 + 1;
      limit_ms = std::max(1, std::min(limit_ms, static_cast<int>(std::min(left_ms, 1e6))));
    }
    std::array<epoll_event, 16> events;
    const int count = epoll_wait(epoll_fd_, events.data(), events.size(), limit_ms);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t source = events[static_cast<std::size_t>(i)].data.u64;
      if (source < prepared) {
        transports_[source]->end_sleep(true);
        has_ended_sleep_[source] = true;
      } else {
        waker_->clear();
      }
    }
  }
  is_asleep_.store(false, std::memory_order_relaxed);
  for (std::size_t i = 0; i < prepared; ++i) {
    if (!has_ended_sleep_[i]) transports_[i]->end_sleep(!may_sleep);
    has_ended_sleep_[i] = false;
  }
}

void Engine::abort() {
  abort_requested_.exchange(true, std::memory_order_acq_rel);
  waker_->wake();
  if (try_take()) {  // nobody is driving: do it here
    if (step() && current_ == nullptr && !messages_.has_works()) end_all();
    release();
  }
}

Status Engine::failure() const {
  if (!has_failed_.load(std::memory_order_acquire)) return ok();
  const std::lock_guard lock(queue_mutex_);
  return failure_;
}

void Engine::fail(Status why) {
  if (has_failed_.load(std::memory_order_relaxed)) return;
  {
    const std::lock_guard lock(queue_mutex_);
    failure_ = why;
    has_failed_.store(true, std::memory_order_release);
  }
  logger_->error("rank {}: {}", rank_, why.message());
  for (Link* link : links_) {
    if (link != nullptr) link->drop_queued();
  }
  send_to_all(Control::kFailed, why.message());
  // Callers may free their buffers when their operations end, and peers may be reading there. Peers
  // hear of the failure and let go; one that does not is not waited for long.
  withdrawal_us_ = now_us() + kWithdrawalLimitUs;
}

void Engine::end_all() {
  withdrawal_us_ = 0;
  const Status why = failure();
  std::deque<std::shared_ptr<WorkState>> orphans;
  {
    const std::lock_guard lock(queue_mutex_);
    orphans.swap(queue_);
  }
  if (next_work_ != nullptr) orphans.push_front(std::move(next_work_));
  next_work_ = nullptr;
  for (Link* link : links_) {
    if (link != nullptr) link->abandon_posted();
  }
  early_.clear();
  if (current_ != nullptr) {
    for (const Joint& joint : joints_) joint.endpoint->discard_incoming(current_->number);
    end_current(why);
  }
  messages_.end_all(why);
  std::vector<std::shared_ptr<MessageWork>> deferred;
  deferred.swap(deferred_);
  for (const auto& work : deferred) complete(*work, why);
  for (const auto& work : orphans) {
    queued_count_.fetch_sub(1, std::memory_order_release);
    work->complete(why);
  }
}

void Engine::close() {
  take_from_thread();
  while (current_ != nullptr || withdrawal_us_ > 0 || take_next() || messages_.has_works() ||
         !deferred_.empty() || submitted_count_.load(std::memory_order_acquire) != 0) {
    if (const std::shared_ptr<WorkState> other = blocker()) {
      release();
      other->engine->wait(*other);
      take_from_thread();
      continue;
    }
    if (!step()) idle();
  }
  is_closing_ = true;
  std::vector<std::shared_ptr<MessageWork>> late;  // from other threads, just now
  {
    const std::lock_guard lock(queue_mutex_);
    is_closed_.store(true, std::memory_order_release);
    late.swap(submitted_);
    submitted_count_.store(0, std::memory_order_release);
  }
  for (const auto& work : late) complete(*work, closed_status());
  messages_.close();
  const double start = now_us();
  if (!has_failed_.load(std::memory_order_relaxed)) send_to_all(Control::kGoodbye, "");
  for (;;) {
    progress();
    const bool was_failed = has_failed_.load(std::memory_order_relaxed);
    std::uint64_t outstanding = 0;
    bool all_left = true;
    for (Link* link : links_) {
      if (link == nullptr || link->best_endpoint() == nullptr) continue;
      outstanding += link->outstanding_count();
      all_left = all_left && has_left_[link->peer()];
    }
    // After a failure nobody waits for bytes any more, but all are to hear of its cause.
    const bool is_taken = outstanding == 0 && (!small_calls_ || small_calls_->is_taken());
    const bool is_flushed = (is_taken || was_failed) && pending_controls_.empty();
    if (is_flushed && all_left) break;
    const double waited_us = now_us() - start;
    if (waited_us > (is_flushed ? kGoodbyeLimitUs : kFlushLimitUs)) {
      if (!is_flushed) {
        logger_->warn("rank {}: closed with {} slices that peers had not acknowledged", rank_,
                      outstanding);
      }
      break;
    }
    deadline_us_ = 0;
    sleep();
  }
  release();
}

void Engine::send_to_all(Control kind, const std::string& text) {
  std::vector<std::byte> message(1 + std::min(text.size(), Endpoint::kMaxControlBytes - 1));
  message[0] = static_cast<std::byte>(kind);
  std::memcpy(message.data() + 1, text.data(), message.size() - 1);
  for (Link* link : links_) {
    // A peer that has left may still wait for our goodbye, but cares for nothing else.
    if (link != nullptr && (kind == Control::kGoodbye || !has_left_[link->peer()])) {
      pending_controls_.push_back({link->peer(), message});
    }
  }
  flush_controls();
}

void Engine::flush_controls() {
  std::erase_if(pending_controls_, [&](const PendingControl& control) {
    Endpoint* endpoint = links_[control.peer]->best_endpoint();
    return endpoint == nullptr || endpoint->send_control(control.message) != Posted::kBusy;
  });
}

std::vector<Link::RailState> Engine::rail_states(int peer) {
  std::vector<Link::RailState> states;
  take_from_thread();
  for (const Joint& joint : joints_) {
    if (joint.peer == peer) states.push_back(links_[peer]->rail_state(joint.plane));
  }
  release();
  return states;
}

std::string Engine::describe_current() const {
  if (current_ == nullptr) return "no operation";
  return "rank " + std::to_string(rank_) + ": operation " + std::to_string(current_->number) +
         " (" + call_text(current_->plan->call_kind, current_->plan->call_count) + ")";
}

}  // namespace polyrail
