// polyrail-topo: shows a topology, of this machine or from a file, as tree, picture, JSON or text.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "perf/topo/this_machine.hpp"
#include "topology/load.hpp"
#include "topology/render.hpp"
#include "topology/synthetic.hpp"
#include "topology/text.hpp"

namespace polyrail {
namespace {

constexpr int kExitError = 2;

struct Arguments {
  std::string file;
  std::string synthetic;
  std::string svg;
  bool is_json = false;
  bool is_text = false;
};

int fail(const std::string& message) {
  std::fprintf(stderr, "polyrail-topo: %s\n", message.c_str());
  return kExitError;
}

Result<Topology> find_topology(const Arguments& arguments) {
  if (!arguments.file.empty()) return load_topology(arguments.file);
  if (!arguments.synthetic.empty()) return parse_synthetic(arguments.synthetic);
  Result<ThisMachine> machine = look_at_this_machine();
  if (!machine.is_ok()) return machine.status();
  for (const std::string& warning : machine.value().warnings) {
    std::fprintf(stderr, "polyrail-topo: warning: %s\n", warning.c_str());
  }
  return std::move(machine).value().topology;
}

Status write_file(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return ok();
  return {StatusCode::kSystemError, "write " + path + ": " + std::strerror(errno)};
}

int run(const Arguments& arguments) {
  const Result<Topology> found = find_topology(arguments);
  if (!found.is_ok()) return fail(found.status().message());
  const Topology& topology = found.value();
  std::string output;
  if (arguments.svg == "-") {
    output = render_svg(topology);
  } else {
    if (!arguments.svg.empty()) {
      const Status written = write_file(arguments.svg, render_svg(topology));
      if (!written.is_ok()) return fail(written.message());
    }
    output = arguments.is_json   ? to_json(topology)
             : arguments.is_text ? to_text(topology)
                                 : render_tree(topology);
  }
  if (std::fwrite(output.data(), 1, output.size(), stdout) != output.size() ||
      std::fflush(stdout) != 0) {
    return fail(std::string("write standard output: ") + std::strerror(errno));
  }
  return 0;
}

int main_program(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Shows a topology: hosts, NUMA nodes, GPUs, and the rails that join them.\n"
      "Without FILE and --synthetic it shows this machine and the rails it offers; nothing is\n"
      "measured, and which planes the rails lie on shows only when ranks meet.");
  app.name("polyrail-topo");
  app.footer(
      "Examples:\n"
      "  polyrail-topo\n"
      "  polyrail-topo cluster.topo --svg cluster.svg\n"
      "  lstopo --of xml | polyrail-topo -\n"
      "  polyrail-topo --synthetic '4 hosts x 2 ranks, shm 10GBps, rails 1gbit+2.5gbit' --text");
  auto* file = app.add_option("FILE", arguments.file,
                              "a .topo file or hwloc XML (lstopo --of xml); - for standard input");
  app.add_option("--synthetic", arguments.synthetic,
                 "a topology in one line, such as \"2 hosts, rails 1gbit+2.5gbit 20us\"")
      ->excludes(file);
  auto* svg = app.add_option("--svg", arguments.svg,
                             "also write a picture to this file; - prints only the picture");
  svg->type_name("OUT");
  auto* json = app.add_flag("--json", arguments.is_json, "print JSON instead of the tree");
  app.add_flag("--text", arguments.is_text, "print the .topo format instead of the tree")
      ->excludes(json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitError;
  }
  return run(arguments);
}

}  // namespace
}  // namespace polyrail

int main(int argc, char** argv) {
  return polyrail::main_program(argc, argv);
}
