// The plain ring of ring.hpp in the shared loop: one rail, fixed shares, or Multipath TCP.
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "perf/peers/ring.hpp"
#include "perf/peers/sweep.hpp"

namespace {

std::vector<std::string> split_text(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

int run(int argc, char** argv) {
  CLI::App app("All-reduce by plain sockets; ranks and port from RANK, WORLD_SIZE, MASTER_PORT");
  peers::SweepOptions options;
  peers::add_sweep_options(app, options);
  peers::RingOptions ring_options;
  std::vector<std::string> addresses;
  app.add_option(
         "--addresses", addresses,
         "Each rank's addresses, the fastest rail first: 10.0.0.1/10.0.1.1,10.0.0.2/10.0.1.2")
      ->delimiter(',')
      ->required();
  app.add_option("--shares", ring_options.shares, "What each rail gets, in any unit")
      ->delimiter(',');
  app.add_flag("--multipath", ring_options.is_multipath, "Multipath TCP from the first addresses");
  app.add_option("--subflows", ring_options.extra_subflows, "Wait for so many further subflows");
  app.add_flag("--spin", ring_options.is_spinning, "Never sleep");
  CLI11_PARSE(app, argc, argv);

  ring_options.rank = peers::environment_number("RANK", 0);
  ring_options.rank_count = peers::environment_number("WORLD_SIZE", 1);
  ring_options.port = peers::environment_number("MASTER_PORT", 29500);
  for (const std::string& each : addresses) {
    ring_options.addresses.push_back(split_text(each, '/'));
  }
  if (addresses.size() != static_cast<std::size_t>(ring_options.rank_count)) {
    throw std::runtime_error("--addresses: one group for each rank");
  }
  if (ring_options.shares.empty()) ring_options.shares = {1.0};
  for (const auto& each : ring_options.addresses) {
    if (each.size() < ring_options.shares.size()) {
      throw std::runtime_error("--shares: not more than a rank has addresses");
    }
  }
  peers::Ring ring(ring_options);
  peers::Peer peer;
  peer.rank = ring_options.rank;
  peer.rank_count = ring_options.rank_count;
  peer.all_reduce = [&ring](const float* input, float* output, std::size_t count) {
    ring.all_reduce(input, output, count);
  };
  return peers::run_sweep(peer, options);
}

}  // namespace

int main(int argc, char** argv) {
  return peers::guarded_main("peers_sockets", [&] { return run(argc, argv); });
}
