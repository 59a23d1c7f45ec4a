// TcpEndpoint: a peer over a tcp rail: its sockets, and the order of what goes through them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transports/tcp/greeting.hpp"
#include "transports/tcp/incoming.hpp"
#include "transports/tcp/outgoing.hpp"
#include "transports/transport.hpp"

namespace polyrail::tcp {

class TcpEndpoint;

// One socket to a peer, in both directions.
struct FramedSocket final : Watched {
  FramedSocket(Descriptor fd_, TcpEndpoint& endpoint_, FrameOrder& order);

  TcpEndpoint& endpoint;
  Descriptor fd;
  OutgoingFrames outgoing;
  IncomingFrames incoming;
  bool is_muted = false;  // does not wake a sleeper when bytes come
};

// Which endpoints a transport visits in each progress(). Room for all is reserved at the start.
struct Roster {
  std::vector<TcpEndpoint*> expected;  // the engine waits for them
  std::vector<TcpEndpoint*> attended;  // have something left to do
};

class TcpEndpoint final : public Endpoint {
 public:
  TcpEndpoint(int peer, Roster& roster) : Endpoint(peer), roster_(roster) {}

  EndpointState state() const override { return state_; }
  Posted put(const SliceHeader& header, const std::byte* source, std::uint64_t cookie) override;
  Posted send_control(std::span<const std::byte> message) override;
  void expect(bool is_expected) override;
  void discard_incoming(std::uint32_t operation) override;
  void abandon() override { end(); }

  // `path` says in messages which way the sockets go.
  void start(std::vector<Descriptor> descriptors, std::string path);
  const std::string& path() const { return path_; }
  std::vector<std::unique_ptr<FramedSocket>>& sockets() { return sockets_; }
  bool is_expected() const { return is_expected_; }
  // Receives, answers, and notes failures. `looks` asks the sockets even if no event came.
  bool progress(Sink& sink, bool looks);
  // False if the last visit ended while its sockets were still bringing what others wait for.
  bool is_settled() const { return is_settled_; }
  // Has something to do that no event will announce.
  bool needs_attention() const;
  // Puts itself on the roster if it needs attention.
  void ask_for_attention();
  void leave_attended() { is_attended_ = false; }
  // False when a socket has failed or the peer has left: then failure() says why.
  bool can_go_on() const;
  Status failure() const;
  // Closes the sockets and forgets what was queued.
  void end();

 private:
  FramedSocket& pick_socket();
  bool has_lost_socket() const;
  void settle_acknowledgements();

  Roster& roster_;
  std::string path_;
  EndpointState state_ = EndpointState::kConnecting;
  bool is_expected_ = false;
  bool is_attended_ = false;
  bool is_settled_ = true;
  std::uint32_t next_sequence_ = 0;
  int unanswered_visits_ = 0;  // visits with an acknowledgement owed and nothing to carry it
  FrameOrder order_;
  // Closed by end(), freed with the endpoint: events already fetched may still point to them.
  std::vector<std::unique_ptr<FramedSocket>> sockets_;
};

}  // namespace polyrail::tcp
