#include "src/base/host_identity.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace polyrail {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Kernel build and processors: the same in every container. They tell apart machines that were
// resumed from one snapshot and so share its boot id, where their hardware or kernel differs.
std::string machine_facts() {
  utsname kernel{};
  std::string facts;
  if (uname(&kernel) == 0) {
    facts = std::string(kernel.machine) + " " + kernel.release + " " + kernel.version;
  }
  return facts + " cpus " + first_line("/sys/devices/system/cpu/possible");
}

}  // namespace

std::string host_identity() {
  return host_identity("/proc/sys/kernel/random/boot_id", machine_facts());
}

std::string host_identity(const std::string& boot_id_file, const std::string& facts) {
  const std::string boot_id = first_line(boot_id_file);
  if (!boot_id.empty()) return "boot " + boot_id + " " + facts;
  // Without a boot id only the name is left, which is good enough to try.
  std::array<char, 256> host_name{};
  gethostname(host_name.data(), host_name.size() - 1);
  return "name " + std::string(host_name.data()) + " " + facts;
}

}  // namespace polyrail
