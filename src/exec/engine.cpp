#include "src/exec/engine.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

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
  engine->wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (engine->epoll_fd_ < 0 || engine->wake_fd_ < 0) {
    return Status(
        StatusCode::kSystemError,
        std::string("make the engine's epoll and event descriptors: ") + std::strerror(errno));
  }
  std::vector<int> descriptors;  // by transport, and the last for abort()
  for (const auto& transport : engine->transports_) descriptors.push_back(transport->descriptor());
  descriptors.push_back(engine->wake_fd_);
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
  if (wake_fd_ >= 0) ::close(wake_fd_);
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

Status Engine::run(Operation& operation) {
  if (has_failed_.load(std::memory_order_acquire)) return failure();
  if (options_.progress == "thread" || is_thread_busy()) {
    // Behind asynchronous work, or on the engine's thread: as a queued operation.
    auto work = std::make_shared<WorkState>(nullptr);
    work->operation.plan = operation.plan;
    work->operation.buffers = operation.buffers;
    submit(work);
    wait(work->operation);
    return work->operation.outcome;
  }
  operation.number = ++submitted_number_ & ~Messages::kFlag;
  take();
  begin(operation);
  drive(operation);
  release();
  return operation.outcome;
}

void Engine::submit(std::shared_ptr<WorkState> work) {
  Operation& operation = work->operation;
  const std::lock_guard lock(queue_mutex_);
  if (has_failed_.load(std::memory_order_relaxed)) {
    operation.complete(failure_);
    return;
  }
  operation.number = ++submitted_number_ & ~Messages::kFlag;
  queue_.push_back(std::move(work));
  queued_count_.fetch_add(1, std::memory_order_seq_cst);
  if (thread_drives()) start_thread();
}

void Engine::thread_main() {
  for (;;) {
    {
      std::unique_lock lock(queue_mutex_);
      queue_filled_.wait(lock, [&] { return is_stopping_ || (is_thread_busy() && !is_closed_); });
      if (is_stopping_) return;
    }
    for (int count; (count = wanted_.load()) != 0;) wanted_.wait(count);
    take();
    is_thread_holding_ = true;
    while (wanted_.load(std::memory_order_relaxed) == 0 && has_business()) {
      if (!step() && has_business()) idle();
    }
    is_thread_holding_ = false;
    release();
  }
}

bool Engine::take_next() {
  std::shared_ptr<WorkState> work;
  {
    const std::lock_guard lock(queue_mutex_);
    if (queue_.empty()) return false;
    work = std::move(queue_.front());
    queue_.pop_front();
  }
  current_work_ = std::move(work);
  begin(current_work_->operation);
  return true;
}

void Engine::wait(Operation& operation) {
  while (!operation.is_done.load(std::memory_order_acquire)) {
    if (thread_drives()) {
      operation.is_done.wait(false, std::memory_order_acquire);
      continue;
    }
    take();
    drive(operation);
    release();
  }
}

void Engine::poll() {
  if (thread_drives() || !try_take()) return;
  if (has_business()) step();
  release();
}

void Engine::drive(Operation& operation) {
  while (!operation.is_done.load(std::memory_order_acquire)) {
    if (!has_business()) return;
    if (operation.is_done.load(std::memory_order_acquire) || step()) continue;
    if (!operation.is_done.load(std::memory_order_acquire)) idle();
  }
}

void Engine::begin(Operation& operation) {
  PR_ASSERT(current_ == nullptr);
  current_ = &operation;
  last_number_ = operation.number;
  const CollectiveSpec& spec = operation.plan->spec;
  begun_[last_number_ % kRemembered] = {call_kind(spec), spec.count};
  if (has_failed_.load(std::memory_order_relaxed)) {
    end_current(failure());
    return;
  }
  deadline_us_ = 0;                                              // set when the first wait begins
  if (abort_requested_.load(std::memory_order_acquire)) return;  // step() ends it
  const BoundPlan& plan = *operation.plan;
  if (small_calls_ && small_calls_->takes(plan.spec)) {
    small_calls_->begin(plan.spec, {operation.number, call_kind(plan.spec), plan.spec.count},
                        operation.buffers.input);
    if (!early_.is_empty()) deliver_early(operation.number);  // the peer does not agree
    try_finish_small();
    return;
  }
  if (scratch_bytes_ < plan.scratch_bytes) {
    constexpr std::size_t kPage = 4096;
    scratch_bytes_ = plan.scratch_bytes;
    scratch_.resize(scratch_bytes_ + kPage);
    const auto address = reinterpret_cast<std::uintptr_t>(scratch_.data());
    scratch_aligned_ = scratch_.data() + (kPage - address % kPage) % kPage;
  }
  operation.buffers.scratch = scratch_aligned_;
  executor_.reserve(plan);
  for (Link* link : links_) {
    if (link != nullptr) link->reserve(plan.steps.size());
  }
  SliceHeader header;
  header.operation = operation.number;
  header.call_kind = call_kind(plan.spec);
  header.call_count = plan.spec.count;
  executor_.start(plan, operation.buffers, header, links_);
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
  if (work != nullptr) queued_count_.fetch_sub(1, std::memory_order_release);
  operation->complete(std::move(status));
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
        std::uint64_t value;
        [[maybe_unused]] const auto n = ::read(wake_fd_, &value, sizeof value);
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
  abort_requested_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
  if (try_take()) {  // nobody is driving: do it here
    if (step() && current_ == nullptr) end_all();
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
  for (Link* link : links_) {
    if (link != nullptr) link->abandon_posted();
  }
  early_.clear();
  if (current_ != nullptr) {
    for (const Joint& joint : joints_) joint.endpoint->discard_incoming(current_->number);
    end_current(why);
  }
  messages_.end_all(why);
  for (const auto& work : orphans) {
    queued_count_.fetch_sub(1, std::memory_order_release);
    work->operation.complete(why);
  }
}

void Engine::close() {
  take_from_thread();
  while (current_ != nullptr || withdrawal_us_ > 0 || take_next() || messages_.has_works() ||
         submitted_count_.load(std::memory_order_acquire) != 0) {
    if (!step()) idle();
  }
  is_closing_ = true;
  is_closed_.store(true, std::memory_order_release);
  messages_.close();
  const double start = now_us();
  const bool was_failed = has_failed_.load(std::memory_order_relaxed);
  if (!was_failed) send_to_all(Control::kGoodbye, "");
  for (;;) {
    progress();
    std::uint64_t outstanding = 0;
    bool all_left = true;
    for (Link* link : links_) {
      if (link == nullptr || link->best_endpoint() == nullptr) continue;
      outstanding += link->outstanding_count();
      all_left = all_left && has_left_[link->peer()];
    }
    // After a failure nobody waits for bytes any more, but all are to hear of its cause.
    const bool is_flushed = (outstanding == 0 || was_failed) && pending_controls_.empty();
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
         " (" + call_text(call_kind(current_->plan->spec), current_->plan->spec.count) + ")";
}

}  // namespace polyrail
