#include "src/bootstrap/bytes.hpp"

namespace polyrail::bootstrap {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void ByteWriter::field(std::string_view value, std::size_t size) {
  value = value.substr(0, size);
  bytes_ += value;
  bytes_.append(size - value.size(), '\0');
}

void ByteWriter::unsigned_bytes(std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
}

std::string_view ByteReader::bytes(std::size_t count) {
  if (count > rest_.size()) {
    is_short_ = true;
    rest_ = {};
    return {};
  }
  const std::string_view result = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return result;
}

std::string ByteReader::field(std::size_t size) {
  const std::string_view all = bytes(size);
  return std::string(all.substr(0, all.find('\0')));
}

std::uint64_t ByteReader::unsigned_bytes(int count) {
  std::uint64_t value = 0;
  int shift = 0;
  for (char byte : bytes(count)) {
    value |= std::uint64_t{static_cast<unsigned char>(byte)} << shift;
    shift += 8;
  }
  return value;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (char byte : bytes) {
    digits += kDigits[static_cast<unsigned char>(byte) >> 4];
    digits += kDigits[byte & 0xf];
  }
  return digits;
}

std::optional<std::string> from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit_value(digits[i]);
    const int low = digit_value(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::string printable(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return result;
}

}  // namespace polyrail::bootstrap
