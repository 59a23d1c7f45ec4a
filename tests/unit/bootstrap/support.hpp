// Helpers of the bootstrap tests: ranks as threads, and counting what a process holds.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <spdlog/sinks/base_sink.h>
#include <polyrail/bootstrap.hpp>

#include "src/base/log.hpp"
#include "src/bootstrap/setup.hpp"

namespace polyrail::test {

using Joined = Result<std::unique_ptr<Bootstrap>>;
using Gathered = Result<std::vector<std::string>>;

inline Options quick_options(std::int64_t timeout_ms = 30000) {
  Options options;
  options.start_timeout_ms = timeout_ms;
  options.log_level = "off";
  return options;
}

// Runs `body` for 0 .. count-1 on threads of their own, at once, and returns what each returned.
template <typename T>
std::vector<T> on_threads(int count, const std::function<T(int)>& body) {
  std::vector<std::unique_ptr<T>> results(count);
  std::vector<std::thread> threads;
  std::barrier start(count);
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      results[i] = std::make_unique<T>(body(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<T> values;
  for (auto& result : results) values.push_back(std::move(*result));
  return values;
}

// All ranks of one id join.
inline std::vector<Joined> join_all(const UniqueId& id, int rank_count, const Options& options) {
  return on_threads<Joined>(rank_count,
                            [&](int rank) { return join(id, rank, rank_count, options); });
}

// Keeps what is logged.
class LogKeeper final : public spdlog::sinks::base_sink<std::mutex>,
                        public std::enable_shared_from_this<LogKeeper> {
 public:
  static std::shared_ptr<LogKeeper> make() { return std::make_shared<LogKeeper>(); }
  Logger logger() {
    auto result = std::make_shared<spdlog::logger>("test", shared_from_this());
    result->set_level(spdlog::level::debug);
    return result;
  }
  // How many lines contain the text.
  int count(std::string_view text) {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(std::count_if(
        lines_.begin(), lines_.end(),
        [&](const std::string& line) { return line.find(text) != std::string::npos; }));
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    lines_.emplace_back(message.payload.data(), message.payload.size());
  }
  void flush_() override {}
  std::vector<std::string> lines_;
};

inline std::vector<Address> addresses_of(const UniqueId& id) {
  std::vector<Address> addresses;
  for (const std::string& text : id.addresses) addresses.push_back(parse_address(text).value());
  return addresses;
}

inline bootstrap::JoinSetup setup_for(const UniqueId& id, int rank, int rank_count,
                                      std::int64_t timeout_ms, Logger logger = silent_logger()) {
  return {id.key, bootstrap::own_claim(rank, rank_count), timeout_ms, std::move(logger)};
}

inline std::size_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

// Threads of this process. Sanitizers start one of their own with the program's first, so that one
// is had first.
inline std::size_t thread_entries() {
  [[maybe_unused]] static const bool kHadOne = [] {
    std::thread([] {}).join();
    return true;
  }();
  return entries("/proc/self/task");
}

// What must be the same before and after.
struct Holdings {
  std::size_t descriptor_count = entries("/proc/self/fd");
  std::size_t thread_count = thread_entries();
  friend bool operator==(const Holdings&, const Holdings&) = default;
};

}  // namespace polyrail::test
