// Fuzzes the texts that users and peers write addresses in: "ip:port" and the option `interfaces`.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/base/address.hpp"
#include "src/base/interfaces.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using polyrail::InterfaceAddress;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto address = polyrail::parse_address(text); address.is_ok()) {
    const auto again = polyrail::parse_address(to_text(address.value()));
    if (!again.is_ok() || again.value() != address.value()) std::abort();
  }
  const std::vector<InterfaceAddress> all = {
      {"lo", polyrail::parse_ip("127.0.0.1").value(), 8, true, true},
      {"eth0", polyrail::parse_ip("10.0.0.1").value(), 24, false, true},
      {"eth1", polyrail::parse_ip("fe80::1%eth1").value(), 64, false, true}};
  if (const auto chosen = polyrail::select_addresses(all, text); chosen.is_ok()) {
    if (chosen.value().empty()) std::abort();
  }
  return 0;
}
