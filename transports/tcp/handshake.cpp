#include "transports/tcp/handshake.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "src/base/assert.hpp"

namespace polyrail::tcp {
namespace {

constexpr std::string_view kMagic = "polyrail/tcp/01\n";
constexpr std::string_view kAcceptorProves = "acceptor";
constexpr std::string_view kDialerProves = "dialer";
constexpr std::string_view kWelcomeProves = "welcome";

struct HelloFields {
  std::uint64_t communicator_id = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint16_t socket_index = 0;
  std::uint16_t socket_count = 0;
  std::uint32_t reserved = 0;
};
static_assert(kMagic.size() + sizeof(HelloFields) + Handshake::kNonceBytes ==
              Handshake::kHelloBytes);

Status stranger(const std::string& why) {
  return {StatusCode::kRemoteError, why};
}

}  // namespace

Handshake::Handshake(const HandshakeSelf& self, Role role, const Nonce& nonce)
    : self_(self),
      state_(role == Role::kDialer ? State::kAwaitsAnswer : State::kAwaitsHello),
      own_nonce_(nonce) {
  PR_ASSERT(self_.key.size() == crypto_generichash_KEYBYTES);
}

Handshake Handshake::for_dialer(const HandshakeSelf& self, std::uint32_t peer,
                                std::uint16_t socket_index, std::uint16_t socket_count,
                                const Nonce& nonce) {
  Handshake result(self, Role::kDialer, nonce);
  result.peer_ = peer;
  result.socket_index_ = socket_index;
  result.socket_count_ = socket_count;
  const HelloFields fields{.communicator_id = self.communicator_id,
                           .from = self.rank,
                           .to = peer,
                           .socket_index = socket_index,
                           .socket_count = socket_count};
  std::uint8_t* out = result.hello_.data();
  std::memcpy(out, kMagic.data(), kMagic.size());
  std::memcpy(out + kMagic.size(), &fields, sizeof(fields));
  std::memcpy(out + kMagic.size() + sizeof(fields), nonce.data(), nonce.size());
  result.send(result.hello_);
  return result;
}

Handshake Handshake::for_acceptor(const HandshakeSelf& self, const Nonce& nonce) {
  return {self, Role::kAcceptor, nonce};
}

std::size_t Handshake::awaited_bytes() const {
  switch (state_) {
    case State::kAwaitsHello:
      return kHelloBytes;
    case State::kAwaitsAnswer:
      return kNonceBytes + kProofBytes;
    case State::kAwaitsProof:
    case State::kAwaitsWelcome:
      return kProofBytes;
    case State::kProven:
    case State::kDone:
      break;
  }
  return 0;
}

Status Handshake::take(std::span<const std::uint8_t> message) {
  PR_ASSERT(message.size() == awaited_bytes());
  switch (state_) {
    case State::kAwaitsHello:
      return take_hello(message);
    case State::kAwaitsAnswer:
      return take_answer(message);
    case State::kAwaitsProof:
      return take_proof(message);
    case State::kAwaitsWelcome:
      return take_welcome(message);
    case State::kProven:
    case State::kDone:
      break;
  }
  PR_ASSERT(false);
  return ok();
}

Status Handshake::take_hello(std::span<const std::uint8_t> message) {
  if (std::memcmp(message.data(), kMagic.data(), kMagic.size()) != 0) {
    return stranger("the first bytes are not those of a Polyrail rank of this version");
  }
  HelloFields fields;
  std::memcpy(&fields, message.data() + kMagic.size(), sizeof(fields));
  if (fields.communicator_id != self_.communicator_id) {
    return stranger("it belongs to another communicator");
  }
  if (fields.to != self_.rank) {
    return stranger("it looks for rank " + std::to_string(fields.to) + ", this is rank " +
                    std::to_string(self_.rank));
  }
  if (fields.from <= self_.rank || fields.from >= self_.rank_count) {
    return stranger("it says it is rank " + std::to_string(fields.from) +
                    ", which does not dial rank " + std::to_string(self_.rank));
  }
  if (fields.socket_count == 0 || fields.socket_count > kMaxSockets ||
      fields.socket_index >= fields.socket_count) {
    return stranger("it says it is socket " + std::to_string(fields.socket_index) + " of " +
                    std::to_string(fields.socket_count));
  }
  peer_ = fields.from;
  socket_index_ = fields.socket_index;
  socket_count_ = fields.socket_count;
  std::copy(message.begin(), message.end(), hello_.begin());
  acceptor_nonce_ = own_nonce_;
  send(acceptor_nonce_);
  send(proof(kAcceptorProves));
  state_ = State::kAwaitsProof;
  return ok();
}

Status Handshake::take_answer(std::span<const std::uint8_t> message) {
  std::copy_n(message.begin(), kNonceBytes, acceptor_nonce_.begin());
  if (!is_proof(kAcceptorProves, message.subspan(kNonceBytes))) {
    return stranger("it does not know the key of this job");
  }
  send(proof(kDialerProves));
  state_ = State::kAwaitsWelcome;
  return ok();
}

Status Handshake::take_proof(std::span<const std::uint8_t> message) {
  if (!is_proof(kDialerProves, message)) return stranger("it does not know the key of this job");
  state_ = State::kProven;
  return ok();
}

Status Handshake::take_welcome(std::span<const std::uint8_t> message) {
  if (!is_proof(kWelcomeProves, message)) return stranger("its welcome is not genuine");
  state_ = State::kDone;
  return ok();
}

void Handshake::welcome() {
  PR_ASSERT(state_ == State::kProven);
  send(proof(kWelcomeProves));
  state_ = State::kDone;
}

std::array<std::uint8_t, Handshake::kProofBytes> Handshake::proof(std::string_view role) const {
  std::array<std::uint8_t, kProofBytes> result;
  crypto_generichash_state hash;
  crypto_generichash_init(&hash, reinterpret_cast<const unsigned char*>(self_.key.data()),
                          self_.key.size(), result.size());
  // Roles are of different length and the rest is of fixed length, so no two inputs coincide.
  crypto_generichash_update(&hash, reinterpret_cast<const unsigned char*>(role.data()),
                            role.size());
  crypto_generichash_update(&hash, hello_.data(), hello_.size());
  crypto_generichash_update(&hash, acceptor_nonce_.data(), acceptor_nonce_.size());
  crypto_generichash_final(&hash, result.data(), result.size());
  return result;
}

bool Handshake::is_proof(std::string_view role, std::span<const std::uint8_t> claimed) const {
  const auto expected = proof(role);
  return claimed.size() == expected.size() &&
         sodium_memcmp(claimed.data(), expected.data(), expected.size()) == 0;
}

void Handshake::send(std::span<const std::uint8_t> bytes) {
  outgoing_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace polyrail::tcp
