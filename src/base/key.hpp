// Key: the 256-bit secret of a job, and proofs that its owner knows it. The only place that draws
// random numbers for secrets; wraps libsodium.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <polyrail/status.hpp>

namespace polyrail {

using Key = std::array<std::uint8_t, 32>;
using Nonce = std::array<std::uint8_t, 32>;  // drawn for one handshake, never used again
using Proof = std::array<std::uint8_t, 32>;

// Any thread. They fail only if the system has no source of random numbers.
Result<Key> random_key();
Result<Nonce> random_nonce();

// Keyed BLAKE2b over the parts. The length of each part goes into the hash, so that the same bytes
// cut differently give another proof.
Proof prove(const Key& key, std::initializer_list<std::string_view> parts);
// Compares in a time that does not depend on the contents.
bool is_same(const Proof& a, const Proof& b);

// A key for one purpose, derived from another; who knows the derived one cannot find the first.
Key derive_key(const Key& key, std::string_view purpose);
// Not secret: tells damage from intact bytes.
std::uint64_t checksum(std::initializer_list<std::string_view> parts);

// The bytes of a trivially copyable value or an array, for the functions above.
template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

}  // namespace polyrail
