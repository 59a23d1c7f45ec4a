#include "src/plan/text.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "topology/lines.hpp"

namespace polyrail {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr int kMostPlanes = 1 << 20;

std::string number_text(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

void append_slice(std::string& text, const Slice& slice) {
  text += ' ';
  text += name(slice.space);
  text += '+' + std::to_string(slice.offset_bytes) + ':' + std::to_string(slice.bytes);
}

// The words of one line, taken from the left. The first that is not as expected makes the error.
class Words {
 public:
  explicit Words(const topo::Line& line) : line_(line) {}

  bool is_at_end() const { return next_ == line_.words.size(); }
  bool failed() const { return !expected_.empty(); }

  // Takes the word if it is this one.
  bool takes(std::string_view word) {
    if (failed() || is_at_end() || line_.words[next_].text != word) return false;
    ++next_;
    return true;
  }
  void expect(std::string_view word) {
    if (!takes(word)) fail("\"" + std::string(word) + "\"");
  }
  std::string_view word(std::string_view what) {
    if (failed() || is_at_end()) {
      fail(std::string(what));
      return {};
    }
    return line_.words[next_++].text;
  }
  template <typename Number>
  Number number(std::string_view what, Number least, Number most) {
    const std::string_view text = word(what);
    if (failed()) return least;
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc{} && end == text.data() + text.size();
    if (is_whole && value >= least && value <= most) return value;
    --next_;
    fail(std::string(what));
    return least;
  }
  std::string value(std::string_view what) {
    if (failed() || is_at_end()) {
      fail(std::string(what));
      return {};
    }
    Result<std::string> expanded = topo::expand(line_.words[next_], {});
    if (!expanded.is_ok()) {
      fail(std::string(what));
      return {};
    }
    ++next_;
    return std::move(expanded).value();
  }
  Slice slice(std::string_view what) {
    const std::string expected = std::string(what) + " such as scratch+4096:512";
    const std::string_view text = word(expected);
    if (failed()) return {};
    Slice slice;
    const std::size_t plus = text.find('+');
    const std::size_t colon = text.find(':');
    const bool is_formed = plus != std::string_view::npos && colon != std::string_view::npos &&
                           plus < colon && parse_space(text.substr(0, plus), slice.space) &&
                           parse(text.substr(plus + 1, colon - plus - 1), slice.offset_bytes) &&
                           parse(text.substr(colon + 1), slice.bytes);
    if (is_formed) return slice;
    --next_;
    fail(expected);
    return {};
  }
  void expect_end() {
    if (!is_at_end()) fail("the end of the line");
  }
  void fail(std::string expected) {
    if (!failed()) expected_ = std::move(expected);
  }
  // Precondition: failed().
  Status status() const {
    std::string found = "found the end of the line";
    if (!is_at_end()) {
      found = "found \"" + std::string(line_.words[next_].text.substr(0, 40)) + "\"";
    }
    return {StatusCode::kInvalidArgument,
            "line " + std::to_string(line_.number) + ": expected " + expected_ + ", " + found};
  }

 private:
  static bool parse(std::string_view text, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
  }
  static bool parse_space(std::string_view text, Space& space) {
    for (const Space one : {Space::kInput, Space::kOutput, Space::kScratch, Space::kWire}) {
      if (text != name(one)) continue;
      space = one;
      return true;
    }
    return false;
  }

  const topo::Line& line_;
  std::size_t next_ = 0;
  std::string expected_;
};

constexpr auto kMost64 = std::numeric_limits<std::uint64_t>::max();
constexpr auto kMost32 = std::numeric_limits<std::uint32_t>::max();

void parse_spec(Words& words, CollectiveSpec& spec) {
  if (const auto collective = parse_collective(words.word("a collective"))) {
    spec.collective = *collective;
  } else {
    words.fail("a collective");
  }
  words.expect("count");
  spec.count = words.number<std::uint64_t>("a number of elements", 0, kMost64);
  words.expect("type");
  if (const auto type = parse_data_type(words.word("an element type"))) {
    spec.type = *type;
  } else {
    words.fail("an element type");
  }
  words.expect("op");
  if (const auto op = parse_reduce_op(words.word("an operator"))) {
    spec.op = *op;
  } else {
    words.fail("an operator");
  }
  words.expect("ranks");
  spec.rank_count = words.number<int>("a number of ranks", 1, kMostRanks);
  if (words.takes("root")) spec.root = words.number<int>("the root's rank", 0, kMostRanks);
  spec.is_ordered = words.takes("ordered");
  if (words.takes("wire")) {
    spec.wire_type = parse_data_type(words.word("an element type"));
    if (!spec.wire_type) words.fail("an element type");
  }
  spec.is_in_place = words.takes("in_place");
  if (words.takes("counts")) {
    do {
      spec.counts.push_back(words.number<std::uint64_t>("a number of elements", 0, kMost64));
    } while (!words.failed() && !words.is_at_end());
  }
  words.expect_end();
}

void parse_head(Words& words, Plan& plan) {
  constexpr double kMostUs = 1e300;
  words.expect("algorithm");
  plan.algorithm = words.value("the algorithm's name");
  words.expect("planes");
  plan.plane_count = words.number<int>("a number of planes", 0, kMostPlanes);
  words.expect("predicted_us");
  plan.predicted_us = words.number<double>("a time in us", 0, kMostUs);
  words.expect("limit_us");
  plan.limit_us = words.number<double>("a time in us", 0, kMostUs);
  words.expect_end();
}

void parse_ends(Words& words, Step& step) {
  step.peer = words.number<int>("the peer's rank", 0, kMostRanks);
  words.expect("rail");
  step.rail = words.number<int>("a plane", 0, kMostPlanes);
  words.expect("signal");
  step.signal = words.number<std::uint32_t>("a signal", 0, kMost32);
}

void parse_step(Words& words, std::size_t index, Schedule& schedule) {
  Step step;
  const auto number = std::to_string(index);
  words.expect(number);
  if (words.takes("put")) {
    step.op = StepOp::kPut;
    parse_ends(words, step);
    step.source = words.slice("a source");
  } else if (words.takes("wait")) {
    step.op = StepOp::kWait;
    parse_ends(words, step);
  } else if (words.takes("reduce")) {
    step.op = StepOp::kReduce;
    step.source = words.slice("a source");
    step.operand = words.slice("an operand");
  } else if (words.takes("copy")) {
    step.op = StepOp::kCopy;
    step.source = words.slice("a source");
  } else {
    words.fail("put, wait, reduce or copy");
  }
  words.expect("->");
  step.target = words.slice("a target");
  step.is_final = words.takes("final");
  if (words.takes("after")) {
    do {
      step.after.push_back(words.number<std::uint32_t>("the number of a step", 0, kMost32));
    } while (!words.failed() && !words.is_at_end());
  }
  words.expect_end();
  schedule.steps.push_back(std::move(step));
}

}  // namespace

std::string to_text(const Step& step) {
  std::string text(name(step.op));
  if (step.op == StepOp::kPut || step.op == StepOp::kWait) {
    text += ' ' + std::to_string(step.peer) + " rail " + std::to_string(step.rail) + " signal " +
            std::to_string(step.signal);
  }
  if (step.op != StepOp::kWait) append_slice(text, step.source);
  if (step.op == StepOp::kReduce) append_slice(text, step.operand);
  text += " ->";
  append_slice(text, step.target);
  if (step.is_final) text += " final";
  if (!step.after.empty()) text += " after";
  for (const std::uint32_t earlier : step.after) text += ' ' + std::to_string(earlier);
  return text;
}

std::string to_text(const Plan& plan) {
  const CollectiveSpec& spec = plan.spec;
  std::string text = "polyrail_plan 1\n";
  text += std::string(name(spec.collective)) + " count " + std::to_string(spec.count) + " type " +
          std::string(name(spec.type)) + " op " + std::string(name(spec.op)) + " ranks " +
          std::to_string(spec.rank_count);
  if (spec.root != 0) text += " root " + std::to_string(spec.root);
  if (spec.is_ordered) text += " ordered";
  if (spec.wire_type) text += " wire " + std::string(name(*spec.wire_type));
  if (spec.is_in_place) text += " in_place";
  if (!spec.counts.empty()) text += " counts";
  for (const std::uint64_t count : spec.counts) text += ' ' + std::to_string(count);
  text += '\n';
  text += "algorithm " + topo::quoted(plan.algorithm) + " planes " +
          std::to_string(plan.plane_count) + " predicted_us " + number_text(plan.predicted_us) +
          " limit_us " + number_text(plan.limit_us) + "\n";
  for (std::size_t rank = 0; rank < plan.schedules.size(); ++rank) {
    const Schedule& schedule = plan.schedules[rank];
    text += "rank " + std::to_string(rank) + " scratch " + std::to_string(schedule.scratch_bytes);
    if (schedule.wire_bytes != 0) text += " wire " + std::to_string(schedule.wire_bytes);
    text += "\n";
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      text += "  " + std::to_string(i) + ' ' + to_text(schedule.steps[i]) + "\n";
    }
  }
  return text;
}

Result<Plan> parse_plan(std::string_view text) {
  Result<std::vector<topo::Line>> lines = topo::split_lines(text);
  if (!lines.is_ok()) return lines.status();
  Plan plan;
  std::size_t read = 0;
  for (const topo::Line& line : lines.value()) {
    Words words(line);
    if (read == 0) {
      words.expect("polyrail_plan");
      words.expect("1");
      words.expect_end();
    } else if (read == 1) {
      parse_spec(words, plan.spec);
    } else if (read == 2) {
      parse_head(words, plan);
    } else if (words.takes("rank")) {
      words.expect(std::to_string(plan.schedules.size()));
      words.expect("scratch");
      plan.schedules.push_back({});
      plan.schedules.back().scratch_bytes = words.number<std::uint64_t>("bytes", 0, kMost64);
      if (words.takes("wire")) {
        plan.schedules.back().wire_bytes = words.number<std::uint64_t>("bytes", 0, kMost64);
      }
      words.expect_end();
    } else if (plan.schedules.empty()) {
      words.fail("\"rank 0\"");
    } else {
      parse_step(words, plan.schedules.back().steps.size(), plan.schedules.back());
    }
    if (words.failed()) return words.status();
    ++read;
  }
  const int line_number = lines.value().empty() ? 1 : lines.value().back().number;
  if (read < 3 || plan.schedules.size() != static_cast<std::size_t>(plan.spec.rank_count)) {
    return Status(StatusCode::kInvalidArgument,
                  "line " + std::to_string(line_number) + ": the plan ends after " +
                      std::to_string(plan.schedules.size()) + " of " +
                      std::to_string(plan.spec.rank_count) + " ranks");
  }
  return plan;
}

}  // namespace polyrail
