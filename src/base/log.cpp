#include "src/base/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace polyrail {

Result<Logger> make_logger(const Options& options, const std::string& name) {
  try {
    spdlog::sink_ptr sink;
    if (options.log_file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.log_file, false);
    }
    auto logger = std::make_shared<spdlog::logger>(name, std::move(sink));
    logger->set_pattern("%H:%M:%S.%f %n %l: %v");
    logger->set_level(spdlog::level::from_str(options.log_level));
    logger->flush_on(spdlog::level::warn);
    return logger;
  } catch (const spdlog::spdlog_ex& error) {
    return Status(StatusCode::kSystemError,
                  "open log file '" + options.log_file + "': " + error.what());
  }
}

Logger silent_logger() {
  auto logger =
      std::make_shared<spdlog::logger>("polyrail", std::make_shared<spdlog::sinks::null_sink_mt>());
  logger->set_level(spdlog::level::off);
  return logger;
}

}  // namespace polyrail
