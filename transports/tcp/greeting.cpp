#include "transports/tcp/greeting.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace polyrail::tcp {

Greeting::Greeting(Descriptor fd, Handshake handshake, bool is_dialer, const SocketAddress& remote,
                   Clock::time_point deadline_)
    : Watched(Kind::kGreeting),
      deadline(deadline_),
      fd_(std::move(fd)),
      handshake_(std::move(handshake)),
      remote_(remote),
      is_dialer_(is_dialer),
      is_connecting_(is_dialer) {}

void Greeting::progress() {
  if (state_ == State::kProven) look_for_hang_up();
  if (state_ != State::kUnderWay) return;
  if (is_connecting_ && !finish_connecting()) return;
  do {
    if (!write_outgoing()) return;
    if (handshake_.state() == Handshake::State::kProven) state_ = State::kProven;
    if (handshake_.state() == Handshake::State::kDone) state_ = State::kDone;
  } while (state_ == State::kUnderWay && read_message());
}

void Greeting::welcome() {
  handshake_.welcome();
  state_ = State::kUnderWay;  // until the welcome is on its way
  progress();
}

bool Greeting::finish_connecting() {
  int error_number = 0;
  socklen_t bytes = sizeof(error_number);
  if (getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error_number, &bytes) != 0) {
    error_number = errno;
  }
  if (error_number != 0) {
    end(State::kRefused, system_error("connect", error_number));
    return false;
  }
  sockaddr_storage peer;
  bytes = sizeof(peer);
  if (getpeername(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) return false;
  is_connecting_ = false;
  return true;
}

bool Greeting::write_outgoing() {
  std::string& bytes = handshake_.outgoing();
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      return false;
    } else if (errno != EINTR) {
      end(State::kBroken, system_error("send during the handshake", errno));
      return false;
    }
  }
  return true;
}

bool Greeting::read_message() {
  const std::size_t awaited = handshake_.awaited_bytes();
  while (have_bytes_ < awaited) {
    const ssize_t got = recv(fd_.get(), message_.data() + have_bytes_, awaited - have_bytes_, 0);
    if (got > 0) {
      have_bytes_ += static_cast<std::size_t>(got);
    } else if (got == 0) {
      end(State::kBroken,
          {StatusCode::kRemoteError, "closed by the other end during the handshake"});
      return false;
    } else if (errno == EAGAIN) {
      return false;
    } else if (errno != EINTR) {
      end(State::kBroken, system_error("receive during the handshake", errno));
      return false;
    }
  }
  have_bytes_ = 0;
  if (Status status = handshake_.take({message_.data(), awaited}); !status.is_ok()) {
    end(State::kRefused, std::move(status));
    return false;
  }
  return true;
}

void Greeting::look_for_hang_up() {
  // The dialer has nothing to say before its welcome: bytes are as wrong as a hang-up.
  std::uint8_t byte;
  const ssize_t got = recv(fd_.get(), &byte, 1, MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  end(State::kBroken, {StatusCode::kRemoteError, "gave up before it was welcomed"});
}

void Greeting::end(State state, Status failure) {
  state_ = state;
  failure_ = std::move(failure);
}

}  // namespace polyrail::tcp
