#include "src/exec/executor.hpp"

#include "src/base/assert.hpp"

namespace polyrail {

void Executor::reserve(const BoundPlan& plan) {
  if (steps_.size() < plan.steps.size()) steps_.resize(plan.steps.size());
  if (signals_.size() < plan.signals.size()) signals_.resize(plan.signals.size());
  if (read_.size() < plan.followed_count) read_.resize(plan.followed_count);
  ready_.reserve(plan.steps.size());
}

void Executor::start(const BoundPlan& plan, const Buffers& buffers, const Arithmetic& arithmetic,
                     const SliceHeader& header, std::vector<Link*>& links) {
  PR_ASSERT(!is_running() && steps_.size() >= plan.steps.size());
  plan_ = &plan;
  buffers_ = buffers;
  arithmetic_ = arithmetic;
  header_ = header;
  links_ = &links;
  steps_left_ = plan.steps.size();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    steps_[i] = {plan.steps[i].blocker_count, false, false, 0};
  }
  for (std::size_t i = 0; i < plan.signals.size(); ++i) {
    signals_[i].landed.clear();
    signals_[i].is_raised = false;
  }
  for (std::size_t i = 0; i < plan.followed_count; ++i) read_[i].clear();
  // A stack: the first starter is to run first.
  ready_.assign(plan.starters.rbegin(), plan.starters.rend());
}

const std::byte* Executor::source_of(const Slice& slice) const {
  switch (slice.space) {
    case Space::kInput:
      return buffers_.input + slice.offset_bytes;
    case Space::kOutput:
      return buffers_.output + slice.offset_bytes;
    case Space::kWire:
      return buffers_.wire + slice.offset_bytes;
    case Space::kScratch:
      break;
  }
  return buffers_.scratch + slice.offset_bytes;
}

std::byte* Executor::target_of(const Slice& slice) const {
  PR_ASSERT(slice.space != Space::kInput);
  std::byte* const memory = slice.space == Space::kScratch ? buffers_.scratch
                            : slice.space == Space::kWire  ? buffers_.wire
                                                           : buffers_.output;
  return memory + slice.offset_bytes;
}

bool Executor::advance() {
  bool is_any = false;
  while (!ready_.empty()) {
    const std::uint32_t step = ready_.back();
    ready_.pop_back();
    on_ready(step);
    is_any = true;
  }
  return is_any;
}

void Executor::on_ready(std::uint32_t index) {
  const BoundStep& step = plan_->steps[index];
  StepState& state = steps_[index];
  state.is_ready = true;
  switch (step.op) {
    case StepOp::kPut:
      run_put(index);
      return;
    case StepOp::kWait:
      if (signals_[step.signal].is_raised) step_done(index);
      return;
    case StepOp::kReduce:
    case StepOp::kCopy:
      if (step.stream_signal == kNoStep) {
        consume(index, 0, step.bytes, nullptr);
        return;
      }
      // What had landed before this step could start; the rest is consumed as it comes.
      signals_[step.stream_signal].landed.for_each(
          [&](std::uint64_t begin, std::uint64_t end) { take(index, begin, end); });
      return;
  }
}

void Executor::run_put(std::uint32_t index) {
  const BoundStep& step = plan_->steps[index];
  Put put;
  put.header = header_;
  put.header.signal = step.signal;
  if (plan_->is_uneven_exchange) put.header.call_count = kUnevenCount | step.source.bytes;
  put.source = source_of(step.source);
  put.bytes = step.source.bytes;
  put.put = index;
  (*links_)[step.peer]->post(put, step.rail);
}

void Executor::on_put_progress(std::uint32_t index, std::uint64_t offset, std::uint64_t bytes) {
  if (!is_running()) return;
  StepState& state = steps_[index];
  state.bytes_done += bytes;
  if (const BoundStep& put = plan_->steps[index]; put.follower != kNoStep) {
    const IntervalSet& landed = signals_[plan_->steps[put.follower].stream_signal].landed;
    const bool is_ready = steps_[put.follower].is_ready;
    read_[put.followed].add(offset, offset + bytes, [&](std::uint64_t begin, std::uint64_t end) {
      if (!is_ready) return;
      landed.for_each_within(begin, end, [&](std::uint64_t from, std::uint64_t to) {
        consume(put.follower, from, to, nullptr);
      });
    });
  }
  if (state.bytes_done >= plan_->steps[index].source.bytes && !state.is_done) step_done(index);
}

bool Executor::is_expected(int peer, const SliceHeader& header) const {
  if (header.signal >= plan_->signals.size()) return false;
  const BoundSignal& signal = plan_->signals[header.signal];
  if (plan_->is_uneven_exchange && header.call_count != (kUnevenCount | signal.target.bytes)) {
    return false;
  }
  return signal.is_used && signal.peer == peer && header.offset_bytes <= signal.target.bytes &&
         header.bytes <= signal.target.bytes - header.offset_bytes &&
         header.offset_bytes % signal.element_bytes == 0 &&
         header.bytes % signal.element_bytes == 0;
}

std::uint64_t Executor::expected_bytes(std::uint32_t signal) const {
  return signal < plan_->signals.size() ? plan_->signals[signal].target.bytes : 0;
}

bool Executor::is_streaming(const BoundSignal& signal) const {
  return signal.stream_step != kNoStep && steps_[signal.stream_step].is_ready;
}

Landing Executor::landing(const SliceHeader& header, bool can_stream) {
  const BoundSignal& signal = plan_->signals[header.signal];
  const SignalState& state = signals_[header.signal];
  if (state.is_raised ||
      (header.bytes > 0 &&
       state.landed.contains(header.offset_bytes, header.offset_bytes + header.bytes))) {
    return {Landing::How::kDiscard, nullptr};
  }
  if (can_stream && header.bytes > 0 && is_streaming(signal) && signal.may_skip_landing) {
    return {Landing::How::kStream, nullptr};
  }
  return {Landing::How::kInto, target_of(signal.target) + header.offset_bytes};
}

void Executor::on_landed(const SliceHeader& header) {
  const BoundSignal& signal = plan_->signals[header.signal];
  const bool streams = is_streaming(signal);
  signals_[header.signal].landed.add(header.offset_bytes, header.offset_bytes + header.bytes,
                                     [&](std::uint64_t begin, std::uint64_t end) {
                                       if (streams) take(signal.stream_step, begin, end);
                                     });
  raise_if_complete(header.signal);
}

void Executor::on_bytes(const SliceHeader& header, std::uint32_t offset_bytes,
                        std::span<const std::byte> bytes) {
  const BoundSignal& signal = plan_->signals[header.signal];
  const std::uint64_t first = header.offset_bytes + offset_bytes;
  signals_[header.signal].landed.add(
      first, first + bytes.size(), [&](std::uint64_t begin, std::uint64_t end) {
        consume_landed(signal.stream_step, begin, end, bytes.data() + (begin - first));
      });
  raise_if_complete(header.signal);
}

void Executor::raise_if_complete(std::uint32_t index) {
  SignalState& state = signals_[index];
  const BoundSignal& signal = plan_->signals[index];
  if (state.is_raised || state.landed.covered_bytes() != signal.target.bytes) return;
  state.is_raised = true;
  if (steps_[signal.wait_step].is_ready) step_done(signal.wait_step);
}

void Executor::take(std::uint32_t index, std::uint64_t begin, std::uint64_t end) {
  const BoundStep& step = plan_->steps[index];
  if (step.followed == kNoStep) {
    consume_landed(index, begin, end, nullptr);
    return;
  }
  read_[step.followed].for_each_within(
      begin, end, [&](std::uint64_t from, std::uint64_t to) { consume(index, from, to, nullptr); });
}

void Executor::consume_landed(std::uint32_t index, std::uint64_t begin, std::uint64_t end,
                              const std::byte* arrived) {
  const std::uint64_t factor = plan_->steps[index].stream_factor;
  consume(index, begin * factor, end * factor, arrived);
}

void Executor::consume(std::uint32_t index, std::uint64_t begin, std::uint64_t end,
                       const std::byte* arrived) {
  const BoundStep& step = plan_->steps[index];
  StepState& state = steps_[index];
  compute(step, begin, end, arrived);
  state.bytes_done += end - begin;
  if (state.bytes_done == step.bytes) step_done(index);
}

// Computes bytes [begin, end) of a step; `arrived`, if not null, stands in for the streamed input.
void Executor::compute(const BoundStep& step, std::uint64_t begin, std::uint64_t end,
                       const std::byte* arrived) {
  if (begin == end) return;
  const auto at = [&](const Slice& slice) {
    return slice.space == Space::kWire ? begin / plan_->wire_factor : begin;
  };
  std::byte* target = target_of(step.target) + at(step.target);
  const std::byte* source = source_of(step.source) + at(step.source);
  const bool is_source_wire = step.source.space == Space::kWire;
  if (step.op == StepOp::kReduce) {
    const std::byte* operand = source_of(step.operand) + at(step.operand);
    if (arrived != nullptr) (step.streams_operand ? operand : source) = arrived;
    if (step.operand.space == Space::kWire) {
      arithmetic_.reduce_wire(source, operand, target, end - begin, step.is_final);
    } else {
      arithmetic_.reduce(source, operand, target, end - begin, step.is_final);
    }
    return;
  }
  if (arrived != nullptr) source = arrived;
  if (is_source_wire != (step.target.space == Space::kWire)) {
    arithmetic_.cast(source, target, end - begin, is_source_wire);
    return;
  }
  const void* operands[] = {source};
  arithmetic_.reduce_many(operands, target, end - begin, step.is_final);
}

void Executor::step_done(std::uint32_t index) {
  StepState& state = steps_[index];
  PR_ASSERT(!state.is_done && steps_left_ > 0);
  state.is_done = true;
  --steps_left_;
  const BoundStep& step = plan_->steps[index];
  for (std::uint32_t i = step.dependent_begin; i < step.dependent_end; ++i) {
    const std::uint32_t next = plan_->dependents[i];
    if (--steps_[next].blockers == 0) ready_.push_back(next);
  }
}

std::string Executor::missing() const {
  std::string text;
  if (!is_running()) return text;
  for (std::size_t i = 0; i < plan_->signals.size(); ++i) {
    const BoundSignal& signal = plan_->signals[i];
    if (!signal.is_used || signals_[i].is_raised) continue;
    if (text.size() > 400) return text + ", ...";
    if (!text.empty()) text += ", ";
    text += std::to_string(signals_[i].landed.covered_bytes()) + " of " +
            std::to_string(signal.target.bytes) + " bytes from rank " + std::to_string(signal.peer);
  }
  if (!text.empty()) return text;
  for (std::size_t i = 0; i < plan_->steps.size(); ++i) {
    if (plan_->steps[i].op != StepOp::kPut || steps_[i].is_done) continue;
    if (text.size() > 400) return text + ", ...";
    if (!text.empty()) text += ", ";
    text += "acknowledgement from rank " + std::to_string(plan_->steps[i].peer) + " of " +
            std::to_string(plan_->steps[i].source.bytes - steps_[i].bytes_done) + " bytes";
  }
  return text;
}

}  // namespace polyrail
