// Handshake: how both ends of a new socket prove that they know the key of the job, as a state
// machine over bytes without I/O.
//
//   dialer                                    acceptor
//   hello (who, to whom, fresh nonce)  ->
//                                      <-     answer (fresh nonce, proof over hello and nonce)
//   proof (over the same)              ->
//                                      <-     welcome (proof over the same, once it is wanted)
//
// Messages have fixed sizes and each is checked before the next is read. A proof is a keyed hash of
// the whole exchange and of the role, so that none can be replayed or reflected. When the acceptor
// has the dialer's proof, and the dialer the welcome, each has seen an answer to its own nonce: the
// socket carries bytes both ways.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <polyrail/status.hpp>

namespace polyrail::tcp {

// Who is at one end of a handshake, and what of.
struct HandshakeSelf {
  std::string key;  // 32 bytes
  std::uint64_t communicator_id = 0;
  std::uint32_t rank = 0;
  std::uint32_t rank_count = 1;
};

class Handshake {
 public:
  static constexpr std::size_t kNonceBytes = 32;
  static constexpr std::size_t kProofBytes = 32;
  static constexpr std::size_t kHelloBytes = 72;
  static constexpr std::size_t kLongestMessageBytes = kHelloBytes;
  static constexpr std::uint16_t kMaxSockets = 16;

  using Nonce = std::array<std::uint8_t, kNonceBytes>;

  enum class Role : std::uint8_t { kDialer, kAcceptor };
  enum class State : std::uint8_t {
    kAwaitsHello,
    kAwaitsAnswer,
    kAwaitsProof,
    kProven,  // acceptor only: the peer is known, welcome() is still to be called
    kAwaitsWelcome,
    kDone,
  };

  // `nonce` must be fresh random bytes.
  static Handshake for_dialer(const HandshakeSelf& self, std::uint32_t peer,
                              std::uint16_t socket_index, std::uint16_t socket_count,
                              const Nonce& nonce);
  static Handshake for_acceptor(const HandshakeSelf& self, const Nonce& nonce);

  State state() const { return state_; }
  // Length of the message awaited from the other end; 0 if none is.
  std::size_t awaited_bytes() const;
  // Takes that message. A failure means that the other end is not who it should be.
  Status take(std::span<const std::uint8_t> message);
  // Acceptor, state kProven: tells the dialer that it has been let in.
  void welcome();
  // Bytes to be sent now, if any; the caller empties it.
  std::string& outgoing() { return outgoing_; }

  // Known to the dialer from the start, to the acceptor from the hello on, to be trusted from
  // kProven on.
  std::uint32_t peer() const { return peer_; }
  std::uint16_t socket_index() const { return socket_index_; }
  std::uint16_t socket_count() const { return socket_count_; }

 private:
  Handshake(const HandshakeSelf& self, Role role, const Nonce& nonce);
  std::array<std::uint8_t, kProofBytes> proof(std::string_view role) const;
  bool is_proof(std::string_view role, std::span<const std::uint8_t> claimed) const;
  Status take_hello(std::span<const std::uint8_t> message);
  Status take_answer(std::span<const std::uint8_t> message);
  Status take_proof(std::span<const std::uint8_t> message);
  Status take_welcome(std::span<const std::uint8_t> message);
  void send(std::span<const std::uint8_t> bytes);

  HandshakeSelf self_;
  State state_;
  std::uint32_t peer_ = 0;
  std::uint16_t socket_index_ = 0;
  std::uint16_t socket_count_ = 0;
  Nonce own_nonce_;
  // What the proofs are over: the hello and the acceptor's nonce, as sent.
  std::array<std::uint8_t, kHelloBytes> hello_{};
  Nonce acceptor_nonce_{};
  std::string outgoing_;
};

}  // namespace polyrail::tcp
