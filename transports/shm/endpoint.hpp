// ShmEndpoint: a peer over the shm rail, from the first look at its memory to the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "src/base/file_descriptor.hpp"
#include "src/base/memory_file.hpp"
#include "src/base/shared_memory.hpp"
#include "transports/shm/address.hpp"
#include "transports/shm/doorbell.hpp"
#include "transports/shm/layout.hpp"
#include "transports/shm/receiver.hpp"
#include "transports/shm/sender.hpp"
#include "transports/shm/small_exchange.hpp"
#include "transports/transport.hpp"

namespace polyrail::shm {

using Clock = std::chrono::steady_clock;

// What the endpoints of one transport have in common; outlives them.
struct Home {
  std::string rail_name;
  int rank = 0;
  int rank_count = 1;
  std::uint64_t communicator_id = 0;
  Key key{};
  Address address;        // of this transport
  FileDescriptor outbox;  // see Outbox
  Mapping boards;         // the own ones
  Doorbell bell;
  SharedMemoryView blocks{};
  std::unique_ptr<ShmSmallExchange> exchange{};

  Outbox layout() const { return {static_cast<std::size_t>(rank_count), address.staging_bytes}; }
};

class ShmEndpoint final : public Endpoint {
 public:
  // Publishes the own proof and opens the peer's memory; if that fails, progress() reports it.
  ShmEndpoint(Home& home, int peer, const Address& address, Clock::time_point deadline);
  ~ShmEndpoint() override;

  EndpointState state() const override { return state_; }
  Posted put(const SliceHeader& header, const std::byte* source, std::uint64_t cookie) override;
  Posted send_control(std::span<const std::byte> message) override;
  void expect(bool is_expected) override { is_expecting_ = is_expected; }
  void abandon() override { close(); }
  void discard_incoming(std::uint32_t operation) override {
    if (receiver_) receiver_->discard_incoming(operation);
  }

  // `is_thorough`: looks for all acknowledgements, even while only bytes are expected.
  bool progress(Sink& sink, bool is_thorough);
  // The process of the peer has ended; the next progress() reports it.
  void note_death() { is_peer_dead_ = true; }
  // A descriptor that becomes readable when the process of the peer ends; -1 if there is none.
  int process_descriptor() const { return process_.get(); }

  bool is_connecting() const { return state_ == EndpointState::kConnecting; }
  // Announces that the own thread is about to sleep; false if there is something to do instead.
  bool prepare_sleep();
  void end_sleep();

 private:
  Status make_own();
  Status open_peer();
  Proof proof_of(int from, int to, const Address& from_address, const Address& to_address) const;
  bool connect(Sink& sink);
  Status judge_peer();
  void publish(std::atomic<std::uint32_t>& flag);
  void close();
  void go_down(Sink& sink, const Status& why);

  Home& home_;
  const Address address_;
  const Clock::time_point deadline_;
  EndpointState state_ = EndpointState::kConnecting;
  Status failure_;  // why connecting failed
  bool is_expecting_ = false;
  bool is_peer_dead_ = false;

  FileDescriptor process_;  // pidfd of the peer
  Mapping own_memory_;
  Mapping peer_memory_;
  Mapping peer_boards_;
  Direction* own_ = nullptr;  // written by this process
  Direction* theirs_ = nullptr;
  Ringer ringer_;
  Crossing crossing_;
  std::optional<Sender> sender_;
  std::optional<Receiver> receiver_;
};

}  // namespace polyrail::shm
