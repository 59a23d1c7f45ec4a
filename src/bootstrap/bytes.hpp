// Writing and reading little-endian fields, and hexadecimal digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace polyrail::bootstrap {

class ByteWriter {
 public:
  void u8(std::uint8_t value) { unsigned_bytes(value, 1); }
  void u16(std::uint16_t value) { unsigned_bytes(value, 2); }
  void u32(std::uint32_t value) { unsigned_bytes(value, 4); }
  void u64(std::uint64_t value) { unsigned_bytes(value, 8); }
  void bytes(std::string_view value) { bytes_ += value; }
  // A field of fixed size; longer values are cut, shorter ones padded with zeros.
  void field(std::string_view value, std::size_t size);
  std::string take() && { return std::move(bytes_); }

 private:
  void unsigned_bytes(std::uint64_t value, int count);
  std::string bytes_;
};

// Reads from bytes that may be too few: then the values are zero and empty, and is_short() tells.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  std::uint8_t u8() { return static_cast<std::uint8_t>(unsigned_bytes(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(unsigned_bytes(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(unsigned_bytes(4)); }
  std::uint64_t u64() { return unsigned_bytes(8); }
  std::string_view bytes(std::size_t count);
  // A field that ByteWriter::field wrote, up to its first zero.
  std::string field(std::size_t size);
  // From here on only so many bytes are there.
  void limit(std::size_t count) { rest_ = rest_.substr(0, count); }

  std::size_t left() const { return rest_.size(); }
  bool is_short() const { return is_short_; }

 private:
  std::uint64_t unsigned_bytes(int count);
  std::string_view rest_;
  bool is_short_ = false;
};

std::string to_hex(std::string_view bytes);
// Nothing unless the text is pairs of hexadecimal digits.
std::optional<std::string> from_hex(std::string_view digits);
// For texts that came from elsewhere: '?' for each byte that does not print.
std::string printable(std::string_view text);

}  // namespace polyrail::bootstrap
