#include "src/base/key.hpp"

#include <cstring>

#include <sodium.h>

#include "src/base/assert.hpp"

namespace polyrail {
namespace {

template <typename Bytes>
Result<Bytes> random_bytes() {
  // Safe to call often and from any thread; prepares the generator the first time.
  if (sodium_init() < 0) {
    return Status(StatusCode::kSystemError, "libsodium found no source of random numbers");
  }
  Bytes bytes;
  randombytes_buf(bytes.data(), bytes.size());
  return bytes;
}

// Keyed if there is a key.
template <std::size_t kSize>
std::array<std::uint8_t, kSize> hash(const Key* key,
                                     std::initializer_list<std::string_view> parts) {
  static_assert(kSize <= crypto_generichash_BYTES_MAX);
  std::array<std::uint8_t, kSize> result;
  crypto_generichash_state state;
  int error = crypto_generichash_init(&state, key == nullptr ? nullptr : key->data(),
                                      key == nullptr ? 0 : key->size(), kSize);
  for (std::string_view part : parts) {
    std::uint8_t length[8];
    for (int i = 0; i < 8; ++i) length[i] = static_cast<std::uint8_t>(part.size() >> (8 * i));
    error |= crypto_generichash_update(&state, length, sizeof(length));
    error |= crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()),
                                       part.size());
  }
  error |= crypto_generichash_final(&state, result.data(), kSize);
  sodium_memzero(&state, sizeof(state));
  PR_ASSERT(error == 0);  // fails only for lengths that libsodium does not know
  return result;
}

}  // namespace

Result<Key> random_key() {
  return random_bytes<Key>();
}

Result<Nonce> random_nonce() {
  return random_bytes<Nonce>();
}

Proof prove(const Key& key, std::initializer_list<std::string_view> parts) {
  return hash<sizeof(Proof)>(&key, parts);
}

bool is_same(const Proof& a, const Proof& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

Key derive_key(const Key& key, std::string_view purpose) {
  return hash<sizeof(Key)>(&key, {"polyrail derived key", purpose});
}

std::uint64_t checksum(std::initializer_list<std::string_view> parts) {
  const auto bytes = hash<16>(nullptr, parts);  // the least length BLAKE2b is defined for here
  std::uint64_t sum = 0;
  for (int i = 0; i < 8; ++i) sum |= std::uint64_t{bytes[i]} << (8 * i);
  return sum;
}

}  // namespace polyrail
