// Transport, Endpoint and Sink: how bytes move. The one interface between the engine and a rail.
//
// A transport serves one local rail. It never blocks and never calls back except from progress().
// Everything here belongs to the engine's thread, unless a comment says otherwise.
//
// Bytes travel as slices: a header that says where they belong, and the payload. The receiver
// decides where a slice lands, so a slice may arrive twice, in any order and over any rail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <polyrail/status.hpp>

#include "topology/rail.hpp"

namespace polyrail {

// In front of each slice. Trivially copyable; a transport carries it as it is (little-endian).
// Only `bytes` means something to a transport.
struct SliceHeader {
  std::uint32_t operation = 0;     // sequence number of the operation on its communicator
  std::uint32_t signal = 0;        // which put, in the receiver's numbering
  std::uint64_t offset_bytes = 0;  // of this slice within the put
  std::uint32_t bytes = 0;         // payload; 0 is legal (a bare signal)
  std::uint32_t call_kind = 0;     // fingerprint of the call: collective, type, operator, flags
  std::uint64_t call_count = 0;    // fingerprint of the call: elements
};
static_assert(sizeof(SliceHeader) == 32);

enum class Posted : std::uint8_t {
  kBusy,      // not taken; offer it again after the next progress()
  kPosted,    // taken; the source must not change until on_acknowledged
  kBuffered,  // taken and copied; the source may change at once (on_acknowledged still comes)
};

enum class EndpointState : std::uint8_t { kConnecting, kUp, kDown };

// One peer over one rail. Owned by its transport; valid as long as the transport is.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  int peer() const { return peer_; }
  virtual EndpointState state() const = 0;

  // Offers one slice. Acknowledgements come with the cookie given here, normally in post order.
  virtual Posted put(const SliceHeader& header, const std::byte* source, std::uint64_t cookie) = 0;
  // Offers a message of at most kMaxControlBytes for the peer's on_control: copied, delivered in
  // order with the slices of this endpoint. Never kPosted.
  virtual Posted send_control(std::span<const std::byte> message) = 0;
  // Says whether the engine is waiting for bytes from this peer on this rail, so that the transport
  // can look there first.
  virtual void expect(bool is_expected) { (void)is_expected; }
  // From now on nothing is written to targets that on_slice gave for slices of this operation; one
  // that is being received goes on as if it had been answered kDiscard. For targets that vanish
  // while a duplicate of their bytes is still arriving.
  virtual void discard_incoming(std::uint32_t operation) { (void)operation; }
  // Gives the peer up: when this returns the endpoint is down, without an on_down, and nothing
  // reads what was posted or writes to targets any more. Not from within progress().
  virtual void abandon() = 0;

  static constexpr std::size_t kMaxControlBytes = 4096;

 protected:
  explicit Endpoint(int peer) : peer_(peer) {}
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

 private:
  int peer_;
};

// Where an arriving slice goes; the answer to on_slice.
struct Landing {
  enum class How : std::uint8_t {
    kInto,     // write header.bytes at target, then call on_landed
    kStream,   // hand the bytes over by on_bytes (only if RailCaps::can_stream)
    kLater,    // not expected yet: keep it, ask again in a later progress(); nothing behind it on
               // this endpoint may overtake it
    kDiscard,  // take it off the wire and forget it; it is acknowledged like any other
  };
  How how = How::kLater;
  std::byte* target = nullptr;
};

// The peer has taken a slice in (landed, streamed or discarded).
struct Acknowledgement {
  std::uint64_t cookie = 0;
  // It had to wait for the peer to enter the operation, so its time says nothing about the rail.
  // True of each slice that was answered kLater; may be true of those that waited behind it or are
  // acknowledged together with it.
  bool was_stalled = false;
  // When the peer had it, by a clock of the peer's, in microseconds; negative if not known. Slices
  // acknowledged together may all have the time of the last one. The acknowledgement itself may
  // come late, behind what the peer sends: rates are learned from this time.
  double landed_us = -1;
  // What had arrived behind it by then, of slices that had not landed yet; 0 if not known.
  std::uint64_t ahead_bytes = 0;
};

// What a transport tells the engine; called only from within progress() of that transport.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void on_up(Endpoint& endpoint) = 0;
  // The endpoint is lost or could not be connected; nothing more comes from it.
  virtual void on_down(Endpoint& endpoint, const Status& why) = 0;
  virtual Landing on_slice(Endpoint& from, const SliceHeader& header) = 0;
  virtual void on_landed(Endpoint& from, const SliceHeader& header) = 0;
  // Part of a slice that was answered kStream: `bytes` lie at `offset_bytes` of the slice and are
  // readable until this call returns. Parts come in ascending order and cover the slice; each but
  // the last is a multiple of 64 bytes long; a slice of no bytes has one, empty. After the last
  // part there is no on_landed.
  virtual void on_bytes(Endpoint& from, const SliceHeader& header, std::uint32_t offset_bytes,
                        std::span<const std::byte> bytes) = 0;
  virtual void on_acknowledged(Endpoint& to, const Acknowledgement& done) = 0;
  virtual void on_control(Endpoint& from, std::span<const std::byte> message) = 0;
};

struct RailCaps {
  bool can_stream = false;         // may be answered Landing::kStream, which saves a copy
  std::size_t buffered_bytes = 0;  // slices up to this size are posted as kBuffered
  std::size_t best_slice_bytes = 256 * 1024;
};

// Optional ability of a rail whose ends share memory: all its ranks hand each other a few bytes at
// once, each writing them once where all others read. Ranks take part in every exchange, in the
// same order; only with endpoints that are up. Engine's thread.
class SmallExchange {
 public:
  virtual ~SmallExchange() = default;
  virtual std::size_t most_bytes() const = 0;
  // Whether the next exchange may be started: everybody has posted in the last one.
  virtual bool can_post() const = 0;
  // Starts the next exchange; the last one must be finished. How many bytes the others post is for
  // them and the caller to agree on. `awaited`: by rank, whose bytes a sleeper is to be woken for;
  // the own one does not count. Precondition: can_post().
  virtual void post(std::span<const std::byte> bytes, std::span<const bool> awaited) = 0;
  // What a peer has posted in this exchange, 8-byte aligned; nullptr: not there yet. Readable until
  // finish().
  virtual const std::byte* poll(int peer) const = 0;
  // What a peer has posted in the exchange after the last one, before this rank has; nullptr: not
  // yet. Precondition: no exchange is under way.
  virtual const std::byte* peek(int peer) const = 0;
  // Ends the exchange. What others have posted, or still post, may be polled until the next post().
  virtual void finish() = 0;

 protected:
  SmallExchange() = default;
  SmallExchange(const SmallExchange&) = delete;
  SmallExchange& operator=(const SmallExchange&) = delete;
};

// A range of memory that a rail may read or write directly. Ends with its destructor.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
};

// What every transport is opened with.
struct TransportContext {
  int rank = 0;
  int rank_count = 1;
  // Authenticates both ends of each connection; 32 bytes, the same on all ranks.
  std::string key;
  // Names this communicator among those of the job, the same on all ranks; not secret.
  std::uint64_t communicator_id = 0;
  int connect_timeout_ms = 10000;
  // Processor time before sleeping is the engine's affair; a transport only looks when asked.
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const Rail& rail() const = 0;
  virtual RailCaps caps() const = 0;
  // What a peer's transport of the same kind needs to reach this rail; opaque bytes, handed over
  // by the bootstrap.
  virtual std::string address() const = 0;
  // Starts to connect to a peer's rail; both ends call it. The outcome is on_up or on_down within
  // connect_timeout_ms. An address that cannot be right fails at once. At most once per peer.
  virtual Result<Endpoint*> connect(int peer, std::string_view address) = 0;
  // Announces memory that will often be a source or target. Optional for callers.
  virtual Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> memory) = 0;
  // The exchange of this rail, if it has that ability: nullptr otherwise.
  virtual SmallExchange* small_exchange() { return nullptr; }
  // Moves what can be moved without blocking. Returns true if anything happened.
  virtual bool progress(Sink& sink) = 0;

  // A descriptor that becomes readable when progress() may have something to do; -1: none, the
  // engine then must not sleep for long. Between prepare_sleep() returning true and end_sleep()
  // the descriptor is certain to wake the sleeper; false: look again first.
  virtual int descriptor() const = 0;
  virtual bool prepare_sleep() { return true; }
  // `was_woken`: the descriptor is readable.
  virtual void end_sleep(bool was_woken) { (void)was_woken; }

 protected:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
};

}  // namespace polyrail
