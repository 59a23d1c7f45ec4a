#include "src/bootstrap/handshake.hpp"

#include <unistd.h>

#include <cstring>

#include <polyrail/polyrail.h>

#include "src/base/assert.hpp"
#include "src/bootstrap/bytes.hpp"

namespace polyrail::bootstrap {
namespace {

// Not the first bytes of any common protocol; the two differ, so that an echo is no answer.
constexpr std::string_view kHelloMagic = "\xb5PRhelo\n";
constexpr std::string_view kChallengeMagic = "\xb5PRchal\n";
static_assert(kHelloMagic.size() == kMagicBytes && kChallengeMagic.size() == kMagicBytes);
constexpr std::size_t kHostBytes = 64;

bool may_begin(std::string_view bytes, std::string_view magic) {
  bytes = bytes.substr(0, magic.size());
  return bytes == magic.substr(0, bytes.size());
}

std::string encode(const Claim& claim) {
  ByteWriter writer;
  writer.u16(claim.protocol);
  writer.u16(0);
  writer.u32(claim.version);
  writer.u32(static_cast<std::uint32_t>(claim.rank));
  writer.u32(static_cast<std::uint32_t>(claim.rank_count));
  writer.u32(claim.process);
  writer.u32(claim.remaining_ms);
  writer.field(claim.host, kHostBytes);
  writer.field("", kClaimBytes - 24 - kHostBytes);  // room for later versions
  return std::move(writer).take();
}

Claim decode_claim(std::string_view bytes) {
  ByteReader reader(bytes);
  Claim claim;
  claim.protocol = reader.u16();
  reader.u16();
  claim.version = reader.u32();
  claim.rank = static_cast<std::int32_t>(reader.u32());
  claim.rank_count = static_cast<std::int32_t>(reader.u32());
  claim.process = reader.u32();
  claim.remaining_ms = reader.u32();
  claim.host = reader.field(kHostBytes);
  return claim;
}

Proof proof_at_end(std::string_view message) {
  Proof proof;
  std::memcpy(proof.data(), message.data() + message.size() - proof.size(), proof.size());
  return proof;
}

Proof root_proof(const Key& key, std::string_view hello, std::string_view nonce_and_claim) {
  return prove(key, {"polyrail bootstrap: root", hello, nonce_and_claim});
}

Proof member_proof(const Key& key, std::string_view hello, std::string_view challenge,
                   std::string_view claim) {
  return prove(key, {"polyrail bootstrap: member", hello, challenge, claim});
}

std::string version_text(std::uint32_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

Claim own_claim(int rank, int rank_count) {
  Claim claim;
  claim.version = POLYRAIL_VERSION_CODE;
  claim.rank = rank;
  claim.rank_count = rank_count;
  claim.process = static_cast<std::uint32_t>(getpid());
  char host[kHostBytes + 1] = "";
  if (gethostname(host, kHostBytes) == 0) claim.host = host;
  return claim;
}

std::string place(const Claim& claim) {
  return "host " + printable(claim.host) + ", process " + std::to_string(claim.process);
}

std::string rank_and_place(const Claim& claim) {
  return "rank " + std::to_string(claim.rank) + " (" + place(claim) + ")";
}

Status check_versions(const Claim& self, const Claim& other) {
  if (self.protocol == other.protocol && self.version == other.version) return ok();
  const auto describe = [](const Claim& claim) {
    return rank_and_place(claim) + " runs Polyrail " + version_text(claim.version) +
           " with start-up protocol " + std::to_string(claim.protocol);
  };
  return {StatusCode::kInvalidUsage,
          describe(other) + ", " + describe(self) + "; all ranks need the same Polyrail"};
}

bool may_be_hello(std::string_view bytes) {
  return may_begin(bytes, kHelloMagic);
}

bool may_be_challenge(std::string_view bytes) {
  return may_begin(bytes, kChallengeMagic);
}

std::string make_hello(const Nonce& member_nonce) {
  return std::string(kHelloMagic).append(bytes_of(member_nonce));
}

std::string make_challenge(const Key& key, std::string_view hello, const Nonce& root_nonce,
                           const Claim& root) {
  std::string message(kChallengeMagic);
  message += bytes_of(root_nonce);
  message += encode(root);
  return message.append(bytes_of(root_proof(key, hello, message)));
}

std::optional<Claim> check_challenge(const Key& key, std::string_view hello,
                                     std::string_view challenge) {
  PR_ASSERT(challenge.size() == kChallengeBytes);
  const std::string_view proven = challenge.substr(0, kChallengeBytes - sizeof(Proof));
  if (!may_be_challenge(challenge)) return std::nullopt;
  if (!is_same(root_proof(key, hello, proven), proof_at_end(challenge))) return std::nullopt;
  return decode_claim(proven.substr(kHelloBytes));
}

std::string make_reply(const Key& key, std::string_view hello, std::string_view challenge,
                       const Claim& member) {
  std::string message = encode(member);
  return message.append(bytes_of(member_proof(key, hello, challenge, message)));
}

std::optional<Claim> check_reply(const Key& key, std::string_view hello, std::string_view challenge,
                                 std::string_view reply) {
  PR_ASSERT(reply.size() == kReplyBytes);
  const std::string_view claim = reply.substr(0, kClaimBytes);
  if (!is_same(member_proof(key, hello, challenge, claim), proof_at_end(reply))) {
    return std::nullopt;
  }
  return decode_claim(claim);
}

}  // namespace polyrail::bootstrap
