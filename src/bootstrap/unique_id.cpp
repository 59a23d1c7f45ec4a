// The two forms of a unique id: 256 bytes, and one line of text. Nothing here tells the key.
//
// Bytes, integers little-endian:
//   0 magic "PRid"   4 version (1)   5 address count   6 used bytes (u16)
//   8 checksum (u64, over the other used bytes)   16 key (32)   48 addresses   then zeros to 256
// An address: family (4 or 6; 7 is 6 with a scope), ip (4 or 16), port (u16), for 7 also the length
// of the scope and the scope. The text has the used bytes as hexadecimal digits.
#include <algorithm>
#include <cstring>

#include <polyrail/bootstrap.hpp>

#include "src/base/address.hpp"
#include "src/base/key.hpp"
#include "src/bootstrap/bytes.hpp"

namespace polyrail {

using namespace bootstrap;  // the inner parts of this folder

namespace {

constexpr std::string_view kMagic = "PRid";
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kChecksumAt = 8;
constexpr std::size_t kKeyAt = 16;
constexpr std::size_t kAddressesAt = 48;
constexpr std::string_view kTextPrefix = "polyrail";

enum Family : std::uint8_t { kIpv4 = 4, kIpv6 = 6, kIpv6WithScope = 7 };

Status bad(const std::string& what) {
  return {StatusCode::kInvalidArgument, "unique id: " + what};
}

std::uint64_t checksum_of(std::string_view used) {
  return checksum({used.substr(0, kChecksumAt), used.substr(kKeyAt)});
}

void write_address(ByteWriter& writer, const Address& address) {
  const IpAddress& ip = address.ip;
  const std::uint8_t family = !ip.is_ipv6 ? kIpv4 : ip.scope.empty() ? kIpv6 : kIpv6WithScope;
  writer.u8(family);
  writer.bytes(bytes_of(ip.bytes).substr(0, ip.is_ipv6 ? 16 : 4));
  writer.u16(address.port);
  if (family == kIpv6WithScope) {
    writer.u8(static_cast<std::uint8_t>(ip.scope.size()));
    writer.bytes(ip.scope);
  }
}

Result<Address> read_address(ByteReader& reader) {
  const std::uint8_t family = reader.u8();
  if (family != kIpv4 && family != kIpv6 && family != kIpv6WithScope) {
    return bad("an address of unknown family " + std::to_string(family));
  }
  Address address;
  address.ip.is_ipv6 = family != kIpv4;
  const std::string_view ip = reader.bytes(address.ip.is_ipv6 ? 16 : 4);
  std::copy(ip.begin(), ip.end(), address.ip.bytes.begin());
  address.port = reader.u16();
  if (family == kIpv6WithScope) address.ip.scope = reader.bytes(reader.u8());
  if (reader.is_short()) return bad("an address is cut off");
  // Only what prints and parses again: no port 0, no odd scope.
  if (const auto same = parse_address(to_text(address)); !same.is_ok() || same.value() != address) {
    return bad("an address is not possible");
  }
  return address;
}

// The bytes that count, without the zeros behind them.
Result<std::string> encode(const UniqueId& id) {
  if (id.addresses.empty()) return bad("it has no address");
  ByteWriter writer;
  writer.bytes(kMagic);
  writer.u8(kVersion);
  writer.u8(0);   // address count, below
  writer.u16(0);  // used bytes, below
  writer.u64(0);  // checksum, below
  writer.bytes(bytes_of(id.key));
  for (const std::string& text : id.addresses) {
    const Result<Address> address = parse_address(text);
    if (!address.is_ok()) return bad(address.status().message());
    write_address(writer, address.value());
  }
  std::string used = std::move(writer).take();
  if (used.size() > UniqueId::kBytes) {
    return bad(std::to_string(id.addresses.size()) + " addresses need " +
               std::to_string(used.size()) + " bytes; " + std::to_string(UniqueId::kBytes) +
               " are there");
  }
  used[5] = static_cast<char>(id.addresses.size());
  used[6] = static_cast<char>(used.size() & 0xff);
  used[7] = static_cast<char>(used.size() >> 8);
  ByteWriter sum;
  sum.u64(checksum_of(used));
  used.replace(kChecksumAt, 8, std::move(sum).take());
  return used;
}

Result<UniqueId> decode(std::string_view bytes) {
  if (bytes.size() < kAddressesAt) {
    return bad("cut off after " + std::to_string(bytes.size()) + " bytes");
  }
  if (std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; })) {
    return bad("all bytes are zero; was it never filled in?");
  }
  ByteReader reader(bytes);
  if (reader.bytes(kMagic.size()) != kMagic) return bad("these bytes are no unique id");
  if (const int version = reader.u8(); version != kVersion) {
    return bad("it is of version " + std::to_string(version) + ", this library reads version " +
               std::to_string(kVersion) + "; all ranks need the same Polyrail");
  }
  const int address_count = reader.u8();
  const std::size_t used = reader.u16();
  if (used > bytes.size()) {
    return bad("cut off: " + std::to_string(bytes.size()) + " of " + std::to_string(used) +
               " bytes are there");
  }
  if (used < kAddressesAt || reader.u64() != checksum_of(bytes.substr(0, used))) {
    return bad("the checksum is wrong; it was damaged on its way");
  }
  UniqueId id;
  const std::string_view key = reader.bytes(id.key.size());
  std::copy(key.begin(), key.end(), id.key.begin());
  reader.limit(used - kAddressesAt);
  for (int i = 0; i < address_count; ++i) {
    const Result<Address> address = read_address(reader);
    if (!address.is_ok()) return address.status();
    id.addresses.push_back(to_text(address.value()));
  }
  if (id.addresses.empty()) return bad("it has no address");
  if (reader.left() != 0) return bad("there is more in it than its addresses");
  const std::string_view rest = bytes.substr(used);
  if (!std::all_of(rest.begin(), rest.end(), [](char c) { return c == 0; })) {
    return bad("there is more behind it");
  }
  return id;
}

}  // namespace

Result<std::array<std::uint8_t, UniqueId::kBytes>> UniqueId::to_bytes() const {
  const Result<std::string> used = encode(*this);
  if (!used.is_ok()) return used.status();
  std::array<std::uint8_t, kBytes> bytes{};
  std::memcpy(bytes.data(), used.value().data(), used.value().size());
  return bytes;
}

Result<UniqueId> UniqueId::from_bytes(const std::uint8_t* bytes, std::size_t size) {
  if (bytes == nullptr) return bad("the pointer is null");
  if (size != kBytes) {
    return bad("it has " + std::to_string(kBytes) + " bytes, here are " + std::to_string(size));
  }
  return decode({reinterpret_cast<const char*>(bytes), size});
}

Result<std::string> UniqueId::to_text() const {
  const Result<std::string> used = encode(*this);
  if (!used.is_ok()) return used.status();
  return std::string(kTextPrefix) + std::to_string(kVersion) + ":" + to_hex(used.value());
}

Result<UniqueId> UniqueId::from_text(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  if (text.empty()) return bad("the text is empty");
  const std::size_t colon = text.find(':');
  const std::string version = std::to_string(kVersion);
  if (!text.starts_with(kTextPrefix) || colon == std::string_view::npos) {
    return bad("the text does not begin with '" + std::string(kTextPrefix) + version + ":'");
  }
  const std::string_view text_version = text.substr(kTextPrefix.size(), colon - kTextPrefix.size());
  if (text_version != version) {
    return bad("the text is not of version " + version + "; all ranks need the same Polyrail");
  }
  const std::optional<std::string> bytes = from_hex(text.substr(colon + 1));
  if (!bytes.has_value()) {
    return bad("the text is not made of pairs of hexadecimal digits; it was cut off or damaged");
  }
  if (bytes->size() > kBytes) return bad("the text is too long");
  return decode(*bytes);
}

}  // namespace polyrail
