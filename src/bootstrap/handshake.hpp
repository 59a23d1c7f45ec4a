// The handshake as values and bytes, without sockets: how a member (a rank other than 0) and the
// root (rank 0) prove to each other that they know the key of the job.
//
//   member -> root   hello      magic, nonce                     says nothing about the job
//   root -> member   challenge  magic, nonce, claim, proof       only one who knows the key can
//   member -> root   reply      claim, proof                     only one who knows the key can
//
// A proof is a keyed hash over everything said so far and the sender's role, so it cannot be sent
// back, used again or moved to another claim. A claim is read only after its proof is right. These
// layouts are the same in all versions, so that versions can tell each other what they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <polyrail/status.hpp>

#include "src/base/key.hpp"

namespace polyrail::bootstrap {

constexpr std::uint16_t kProtocol = 1;  // of the frames after the handshake

// Who a process says it is.
struct Claim {
  std::uint16_t protocol = kProtocol;
  std::uint32_t version = 0;  // POLYRAIL_VERSION_CODE of its library
  std::int32_t rank = 0;
  std::int32_t rank_count = 0;
  std::uint32_t process = 0;       // its id on its host
  std::uint32_t remaining_ms = 0;  // until its deadline
  std::string host;                // at most 64 bytes

  friend bool operator==(const Claim&, const Claim&) = default;
};

// This process and library as that rank.
Claim own_claim(int rank, int rank_count);
std::string rank_and_place(const Claim& claim);  // "rank 1 (host a, process 77)"
std::string place(const Claim& claim);           // "host a, process 77"
// kOk if both run the same library; otherwise the refusal.
Status check_versions(const Claim& self, const Claim& other);

constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kClaimBytes = 96;
constexpr std::size_t kHelloBytes = kMagicBytes + sizeof(Nonce);
constexpr std::size_t kChallengeBytes = kHelloBytes + kClaimBytes + sizeof(Proof);
constexpr std::size_t kReplyBytes = kClaimBytes + sizeof(Proof);

// True if `bytes`, possibly not all of them yet, can be the beginning of such a message.
bool may_be_hello(std::string_view bytes);
bool may_be_challenge(std::string_view bytes);

std::string make_hello(const Nonce& member_nonce);
// `hello` is the whole message that came.
std::string make_challenge(const Key& key, std::string_view hello, const Nonce& root_nonce,
                           const Claim& root);
// The root's claim, or nothing if the proof is wrong.
std::optional<Claim> check_challenge(const Key& key, std::string_view hello,
                                     std::string_view challenge);
std::string make_reply(const Key& key, std::string_view hello, std::string_view challenge,
                       const Claim& member);
// The member's claim, or nothing if the proof is wrong.
std::optional<Claim> check_reply(const Key& key, std::string_view hello, std::string_view challenge,
                                 std::string_view reply);

}  // namespace polyrail::bootstrap
