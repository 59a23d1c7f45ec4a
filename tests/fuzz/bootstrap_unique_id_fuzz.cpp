// Fuzzes both forms of a unique id: nothing crashes, and what is accepted survives the round trip.
// Also with the checksum made right, so that the parts behind it are reached.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <polyrail/bootstrap.hpp>

#include "src/base/key.hpp"

namespace {

using polyrail::UniqueId;

void check(const polyrail::Result<UniqueId>& id) {
  if (!id.is_ok()) {
    if (id.status().message().empty()) std::abort();
    return;
  }
  const auto bytes = id.value().to_bytes();
  const auto text = id.value().to_text();
  if (!bytes.is_ok() || !text.is_ok()) std::abort();
  const auto from_bytes = UniqueId::from_bytes(bytes.value().data(), bytes.value().size());
  const auto from_text = UniqueId::from_text(text.value());
  if (!from_bytes.is_ok() || from_bytes.value() != id.value()) std::abort();
  if (!from_text.is_ok() || from_text.value() != id.value()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(UniqueId::from_text({reinterpret_cast<const char*>(data), size}));
  check(UniqueId::from_bytes(data, size));

  std::array<std::uint8_t, UniqueId::kBytes> bytes{};
  std::copy_n(data, std::min(size, bytes.size()), bytes.begin());
  check(UniqueId::from_bytes(bytes.data(), bytes.size()));
  const std::size_t used = std::clamp<std::size_t>(bytes[6] + 256u * bytes[7], 48, bytes.size());
  const std::string_view view = polyrail::bytes_of(bytes).substr(0, used);
  const std::uint64_t sum = polyrail::checksum({view.substr(0, 8), view.substr(16)});
  for (int i = 0; i < 8; ++i) bytes[8 + i] = static_cast<std::uint8_t>(sum >> (8 * i));
  check(UniqueId::from_bytes(bytes.data(), bytes.size()));
  return 0;
}
