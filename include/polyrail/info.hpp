// What this build holds and what this machine offers, without joining anybody.
#pragma once

#include <string>
#include <vector>

#include <polyrail/communicator.hpp>
#include <polyrail/options.hpp>
#include <polyrail/status.hpp>

namespace polyrail {

struct TransportInfo {
  std::string name;
  bool is_built = false;
  std::string note;  // why it is not, or what it is for
};

struct BuildInfo {
  std::string version;          // "0.1.0"
  std::string instruction_set;  // chosen for the kernels at run time
  std::vector<TransportInfo> transports;
};

BuildInfo build_info();

// The rails that the options allow on this host; nothing is connected or measured. Fails if they
// name a transport that is not in this build.
Result<std::vector<RailReport>> find_rails(const Options& options);

}  // namespace polyrail
