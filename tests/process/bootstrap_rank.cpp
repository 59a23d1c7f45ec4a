// One rank as a process: joins as its environment says, gathers, and reports on standard output.
//   bootstrap_rank ROUNDS [wait]    with `wait` it waits for its standard input to end in between
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <polyrail/bootstrap.hpp>

namespace {

int fail(const polyrail::Status& status) {
  std::printf("%s: %s\n", polyrail::name(status.code()), status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int round_count = argc > 1 ? std::atoi(argv[1]) : 1;
  const auto options = polyrail::options_from_environment();
  if (!options.is_ok()) return fail(options.status());
  const auto joined = polyrail::join_from_environment(options.value());
  if (!joined.is_ok()) return fail(joined.status());
  std::printf("joined\n");
  std::fflush(stdout);
  char byte = 0;
  if (argc > 2 && read(STDIN_FILENO, &byte, 1) != 0) return 2;
  for (int round = 0; round < round_count; ++round) {
    const std::string own = std::to_string(joined.value()->rank()) + "." + std::to_string(round);
    const auto all = joined.value()->all_gather("round " + std::to_string(round), own);
    if (!all.is_ok()) return fail(all.status());
    std::string line = "gathered";
    for (const std::string& part : all.value()) line += " " + part;
    std::printf("%s\n", line.c_str());
  }
  return 0;
}
