// polyrail-info: what this build holds, the rails found here, and every option with its value.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include <polyrail/info.hpp>

namespace polyrail {
namespace {

nlohmann::json to_json(const BuildInfo& build, const std::vector<RailReport>& rails,
                       const Options& options) {
  nlohmann::json json;
  json["version"] = build.version;
  json["instruction_set"] = build.instruction_set;
  for (const TransportInfo& transport : build.transports) {
    json["transports"].push_back(
        {{"name", transport.name}, {"built", transport.is_built}, {"note", transport.note}});
  }
  json["rails"] = nlohmann::json::array();
  for (const RailReport& rail : rails) {
    json["rails"].push_back({{"name", rail.name},
                             {"kind", rail.kind},
                             {"device", rail.device},
                             {"address", rail.address}});
  }
  for (const OptionRow& row : option_rows()) {
    json["options"].push_back({{"name", row.name},
                               {"type", row.type},
                               {"value", option_text(options, row.name)},
                               {"default", row.fallback},
                               {"unit", row.unit},
                               {"sentence", row.sentence}});
  }
  return json;
}

void print_build(const BuildInfo& build) {
  std::printf("Polyrail %s, kernels for %s\n\nTransports\n", build.version.c_str(),
              build.instruction_set.c_str());
  for (const TransportInfo& transport : build.transports) {
    std::printf("  %-10s %-10s %s\n", transport.name.c_str(),
                transport.is_built ? "built" : "not built", transport.note.c_str());
  }
}

void print_rails(const std::vector<RailReport>& rails) {
  std::printf("\nRails of this host (not measured: that happens when ranks meet)\n");
  std::printf("  %-14s %-9s %-12s %s\n", "name", "kind", "device", "address");
  for (const RailReport& rail : rails) {
    std::printf("  %-14s %-9s %-12s %s\n", rail.name.c_str(), rail.kind.c_str(),
                rail.device.c_str(), rail.address.c_str());
  }
  if (rails.empty()) std::printf("  none\n");
}

// Prints text in lines of at most 100 columns behind an indent.
void print_wrapped(const std::string& text, std::size_t indent) {
  constexpr std::size_t kColumns = 100;
  const std::size_t width = kColumns - indent;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = std::min(width, text.size() - at);
    if (at + length < text.size()) {
      const std::size_t space = text.rfind(' ', at + length);
      if (space != std::string::npos && space > at) length = space - at;
    }
    std::printf("%*s%s\n", static_cast<int>(indent), "", text.substr(at, length).c_str());
    at += length;
    while (at < text.size() && text[at] == ' ') ++at;
  }
}

void print_options(const Options& options) {
  std::printf("\nOptions (environment variable POLYRAIL_<NAME>)\n");
  for (const OptionRow& row : option_rows()) {
    const std::string value = option_text(options, row.name);
    std::string head = std::string(row.name) + " = " + (value.empty() ? "\"\"" : value);
    if (!row.unit.empty() && row.unit != "rails" && row.unit != "sockets") {
      head += " " + std::string(row.unit);
    }
    if (value != row.fallback) {
      head +=
          "   [set; default " + (row.fallback.empty() ? "\"\"" : std::string(row.fallback)) + "]";
    }
    std::printf("  %s\n", head.c_str());
    print_wrapped(std::string(row.sentence), 6);
  }
}

int run(int argc, char** argv) {
  CLI::App app("What this build of Polyrail holds, the rails found here, and the options.",
               "polyrail-info");
  bool only_options = false;
  bool only_rails = false;
  bool as_json = false;
  app.add_flag("--options", only_options, "Only the options");
  app.add_flag("--rails", only_rails, "Only the rails");
  app.add_flag("--json", as_json, "Everything as JSON");
  app.set_version_flag("--version", build_info().version);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const Result<Options> options = options_from_environment();
  if (!options.is_ok()) {
    std::fprintf(stderr, "polyrail-info: %s\n", options.status().message().c_str());
    return 2;
  }
  const Result<std::vector<RailReport>> rails = find_rails(options.value());
  if (!rails.is_ok()) {
    std::fprintf(stderr, "polyrail-info: %s\n", rails.status().message().c_str());
    return 2;
  }
  const BuildInfo build = build_info();
  if (as_json) {
    std::printf("%s\n", to_json(build, rails.value(), options.value()).dump(1).c_str());
    return 0;
  }
  const bool everything = !only_options && !only_rails;
  if (everything) print_build(build);
  if (everything || only_rails) print_rails(rails.value());
  if (everything || only_options) print_options(options.value());
  return 0;
}

}  // namespace
}  // namespace polyrail

int main(int argc, char** argv) {
  return polyrail::run(argc, argv);
}
