#include <polyrail/communicator.hpp>

#include <algorithm>
#include <cstring>

#include "src/base/log.hpp"
#include "src/comm/arguments.hpp"
#include "src/comm/calibrate.hpp"
#include "src/comm/fused.hpp"
#include "src/comm/message_calls.hpp"
#include "src/comm/network.hpp"
#include "src/comm/plan_cache.hpp"
#include "src/comm/split.hpp"
#include "src/comm/window.hpp"
#include "src/exec/engine.hpp"
#include "src/plan/planner.hpp"

namespace polyrail {
namespace {

class CommunicatorImpl final : public Communicator {
 public:
  CommunicatorImpl(std::unique_ptr<Bootstrap> bootstrap, const Options& options, Logger logger,
                   Topology topology, std::shared_ptr<Engine> engine)
      : bootstrap_(std::move(bootstrap)),
        options_(options),
        logger_(std::move(logger)),
        engine_(std::move(engine)),
        plans_(bootstrap_->rank(), std::move(topology), options.algorithm) {}

  ~CommunicatorImpl() override { engine_->close(); }

  int rank() const override { return bootstrap_->rank(); }
  int rank_count() const override { return bootstrap_->rank_count(); }

  Status run(const Call& call) override {
    double weights = 0;
    Operation operation;
    if (Status status = prepare(operation, call); !status.is_ok()) return status;
    if (has_weights(call)) {
      if (Status status = sum_weights(call, weights); !status.is_ok()) return status;
      operation.divisor = &weights;
    }
    Status status = engine_->run(operation);
    if (status.is_ok() && wants_identity(call)) fill_with_identity(call);
    return status;
  }

  Work start(const Call& call) override { return start(call, {}); }

  Work start(const Call& call, std::span<const Work> after) override {
    auto work = std::make_shared<WorkState>(engine_);
    if (Status status = prepare(work->operation, call); !status.is_ok()) return Work(status);
    if (has_weights(call)) {
      // Runs before the operation, which finds the sum here.
      work->weights = call.reduction.factor;
      auto sum = std::make_shared<WorkState>(engine_);
      if (Status status = prepare(sum->operation, weights_call(work->weights)); !status.is_ok()) {
        return Work(status);
      }
      sum->keeps = work;
      work->operation.divisor = &work->weights;
      (void)submit(std::move(sum), after);
      return submit(std::move(work), {});  // what it waits for, the sum waits for already
    }
    if (wants_identity(call)) {
      work->on_success = [call] { fill_with_identity(call); };
    }
    return submit(std::move(work), after);
  }

  Work start_fused(std::span<const Call> calls, std::span<const Work> after) override {
    if (Status status = FusedCalls::check(calls); !status.is_ok()) return Work(status);
    for (const Call& call : calls) {
      if (Status status = check(call); !status.is_ok()) return Work(status);
    }
    // Shared by the two ends of the operation.
    const auto fused = std::make_shared<FusedCalls>(calls);
    auto work = std::make_shared<WorkState>(engine_);
    if (Status status = prepare(work->operation, fused->call()); !status.is_ok()) {
      return Work(status);
    }
    work->on_begin = [fused] { fused->copy_in(); };
    work->on_success = [fused] { fused->copy_out(); };
    return submit(std::move(work), after);
  }

  Status check(const Call& call) override { return read(call, spec_); }
  Status check(const Message& message) const override {
    return make_messages(caller(nullptr), std::span(&message, 1)).status();
  }

  Result<std::unique_ptr<Communicator>> split(int color, int key, const Options& options) override {
    Result<std::unique_ptr<Bootstrap>> part = polyrail::split(*bootstrap_, color, key, options);
    if (!part.is_ok()) return part.status();
    if (part.value() == nullptr) return std::unique_ptr<Communicator>();
    return create(std::move(part).value(), options);
  }
  Result<std::unique_ptr<Communicator>> dup() override { return split(0, rank(), options_); }

  Status run(std::span<const Message> messages) override {
    return run(make_messages(caller(nullptr), messages));
  }
  Work start(std::span<const Message> messages, std::span<const Work> after) override {
    return start(make_messages(caller(engine_), messages), after);
  }
  Status exchange(const void* send, void* receive, std::uint64_t count, DataType type,
                  int peer) override {
    return run(make_exchange(caller(nullptr), send, receive, count, type, peer));
  }
  Work exchange_async(const void* send, void* receive, std::uint64_t count, DataType type,
                      int peer) override {
    return start(make_exchange(caller(engine_), send, receive, count, type, peer));
  }
  Status pairwise_average(void* data, std::uint64_t count, DataType type, int peer) override {
    return run(make_pairwise_average(caller(nullptr), data, count, type, peer));
  }
  Work pairwise_average_async(void* data, std::uint64_t count, DataType type, int peer) override {
    return start(make_pairwise_average(caller(engine_), data, count, type, peer));
  }
  Result<std::unique_ptr<Window>> create_window(std::uint64_t slot_count,
                                                std::uint64_t slot_bytes) override {
    return polyrail::create_window(engine_, rank(), rank_count(), ++window_count_, slot_count,
                                   slot_bytes);
  }

  Status async_error() const override { return engine_->failure(); }
  void abort() override { engine_->abort(); }

  std::vector<RailReport> rails() const override {
    std::vector<RailReport> reports;
    for (const Rail& rail : plans_.topology().host_of(rank()).rails) {
      RailReport report;
      report.name = rail.name;
      report.kind = std::string(name(rail.kind));
      report.device = rail.device;
      report.address = rail.address;
      report.plane = rail.plane;
      report.latency_us = rail.curve.latency_us();
      report.bytes_per_s = rail.curve.bytes_per_s();
      for (int peer = 0; peer < rank_count(); ++peer) {
        if (peer == rank()) continue;
        for (const Link::RailState& state : engine_->rail_states(peer)) {
          if (state.plane != rail.plane) continue;
          report.bytes_sent += state.bytes_sent;
          report.current_bytes_per_s = std::max(report.current_bytes_per_s, state.bytes_per_s);
        }
      }
      reports.push_back(std::move(report));
    }
    return reports;
  }

  double limit_us(const Call& call) override {
    CollectiveSpec spec;
    if (!read(call, spec).is_ok()) return 0;
    return polyrail::limit_us(plans_.topology(), spec);
  }

  std::string explain(const Call& call) override {
    CollectiveSpec spec;
    if (Status status = read(call, spec); !status.is_ok()) return status.message();
    const PlanOptions options = plans_.options_for(spec);
    const Result<Plan> plan = make_plan(plans_.topology(), spec, options);
    if (!plan.is_ok()) return plan.status().message();
    std::string text = polyrail::explain(plan.value(), plans_.topology(), options);
    const Result<BoundPlan> bound = bind_plan(plan.value(), rank());
    if (bound.is_ok() && engine_->is_small_call(bound.value())) {
      text +=
          "\nSo few bytes do not take this plan: each rank writes them once where all others\n"
          "read them, in shared memory.\n";
    }
    return text;
  }

 private:
  Work submit(std::shared_ptr<WorkState> work, std::span<const Work> after) {
    work->after.assign(after.begin(), after.end());
    engine_->submit(work);
    return Work(std::move(work));
  }

  MessageCaller caller(std::shared_ptr<Engine> engine) const {
    return {rank(), rank_count(), std::move(engine)};
  }
  Status run(Result<std::shared_ptr<MessageWork>> made) {
    return made.is_ok() ? engine_->run_messages(std::move(made).value()) : made.status();
  }
  Work start(Result<std::shared_ptr<MessageWork>> made, std::span<const Work> after = {}) {
    if (!made.is_ok()) return Work(made.status());
    made.value()->after.assign(after.begin(), after.end());
    engine_->start_messages(made.value());
    return Work(std::move(made).value());
  }

  Status read(const Call& call, CollectiveSpec& spec) const {
    return read_call(call, rank(), rank_count(), options_.deterministic, spec);
  }

  // Of an exclusive scan by a user's operator the first rank has nothing to combine.
  bool wants_identity(const Call& call) const {
    return call.collective == Collective::kExclusiveScan && rank() == 0 &&
           call.reduction.op == ReduceOp::kUser && call.reduction.user->identity != nullptr;
  }
  static void fill_with_identity(const Call& call) {
    const std::size_t size = size_bytes(call.type);
    auto* const output = static_cast<std::byte*>(call.output);
    for (std::uint64_t i = 0; i < call.count; ++i) {
      std::memcpy(output + i * size, call.reduction.user->identity, size);
    }
  }

  static bool has_weights(const Call& call) {
    return reduces(call.collective) && call.reduction.op == ReduceOp::kWeightedAvg;
  }
  // The sum of the weights. By its own operator, so that it meets no other call of one number.
  static Call weights_call(double& weights) {
    return Call::all_reduce(&weights, &weights, 1, DataType::kFloat64, Reduction::weighted_avg(1));
  }
  Status sum_weights(const Call& call, double& weights) {
    weights = call.reduction.factor;
    Operation operation;
    if (Status status = prepare(operation, weights_call(weights)); !status.is_ok()) return status;
    return engine_->run(operation);
  }

  Status prepare(Operation& operation, const Call& call) {
    if (Status status = read(call, spec_); !status.is_ok()) return status;
    Result<std::shared_ptr<const BoundPlan>> plan = plans_.find_or_make(spec_);
    if (!plan.is_ok()) return plan.status();
    operation.plan = std::move(plan).value();
    operation.buffers.input = static_cast<const std::byte*>(call.input);
    operation.buffers.output = static_cast<std::byte*>(call.output);
    operation.user = spec_.op == ReduceOp::kUser ? call.reduction.user : nullptr;
    operation.factor = call.reduction.factor;
    return ok();
  }

  std::unique_ptr<Bootstrap> bootstrap_;
  const Options options_;
  Logger logger_;
  std::shared_ptr<Engine> engine_;  // shared with Works that outlive this
  PlanCache plans_;
  CollectiveSpec spec_;             // of the call that is being prepared
  std::uint32_t window_count_ = 0;  // made so far
};

// The exchange over which few bytes go, if one joins all ranks and each rank has it.
Result<SmallExchange*> find_small_exchange(Bootstrap& bootstrap, const Network& network) {
  const int peer_count = bootstrap.rank_count() - 1;
  if (peer_count == 0 || network.topology.hosts.size() != 1) return nullptr;
  SmallExchange* found = nullptr;
  for (std::size_t i = 0; i < network.transports.size() && found == nullptr; ++i) {
    const auto joint_count = std::count_if(
        network.joints.begin(), network.joints.end(),
        [i](const Joint& joint) { return static_cast<std::size_t>(joint.transport) == i; });
    if (joint_count == peer_count) found = network.transports[i]->small_exchange();
  }
  Result<std::vector<std::string>> all =
      bootstrap.all_gather("choice of a small exchange", found != nullptr ? "yes" : "no");
  if (!all.is_ok()) return all.status();
  const auto& answers = all.value();
  return std::count(answers.begin(), answers.end(), "yes") == peer_count + 1 ? found : nullptr;
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(std::unique_ptr<Bootstrap> bootstrap,
                                                           const Options& options) {
  if (bootstrap == nullptr) {
    return Status(StatusCode::kInvalidArgument, "create a communicator: the bootstrap is null");
  }
  if (Status status = check_options(options); !status.is_ok()) return status;
  Result<Logger> logger = make_logger(options, "polyrail");
  if (!logger.is_ok()) return logger.status();
  Result<Network> network = connect(*bootstrap, options, logger.value());
  if (!network.is_ok()) return network.status();
  if (Status status = calibrate(*bootstrap, network.value(), options, logger.value());
      !status.is_ok()) {
    return status;
  }
  const Topology& topology = network.value().topology;
  const int rank = bootstrap->rank();
  Result<SmallExchange*> small_exchange = find_small_exchange(*bootstrap, network.value());
  if (!small_exchange.is_ok()) return small_exchange.status();
  Engine::Setup setup;
  setup.small_exchange = small_exchange.value();
  setup.rank = rank;
  setup.rank_count = bootstrap->rank_count();
  setup.plane_count = topology.plane_count();
  setup.options = options;
  setup.logger = logger.value();
  for (const Joint& joint : network.value().joints) {
    const CostCurve& mine = topology.rail(rank, joint.plane)->curve;
    const CostCurve& theirs = topology.rail(joint.peer, joint.plane)->curve;
    setup.joints.push_back({joint.peer, joint.plane, joint.endpoint,
                            network.value().transports[joint.transport]->caps(),
                            std::max(mine.latency_us(), theirs.latency_us()),
                            std::min(mine.bytes_per_s(), theirs.bytes_per_s())});
  }
  setup.transports = std::move(network.value().transports);
  Result<std::shared_ptr<Engine>> engine = Engine::create(std::move(setup));
  if (!engine.is_ok()) return engine.status();
  return std::unique_ptr<Communicator>(new CommunicatorImpl(std::move(bootstrap), options,
                                                            std::move(logger).value(), topology,
                                                            std::move(engine).value()));
}

}  // namespace polyrail
