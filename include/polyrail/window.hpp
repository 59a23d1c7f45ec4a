// Window: slots of memory on every rank that others write, and average with, without its help.
#pragma once

#include <cstdint>

#include <polyrail/status.hpp>
#include <polyrail/types.hpp>
#include <polyrail/work.hpp>

namespace polyrail {

// Each rank has slot_count slots of slot_bytes, empty (zeros, version 0) at first; memory is taken
// when a slot is first written. Made by Communicator::create_window, a collective.
//
// Threads: any, at the same time, also beside calls on the communicator.
//
// While a window exists, the communicator's own thread moves everything, whatever the option
// `progress` says (with "caller" it goes on doing so afterwards); it sleeps when nothing comes.
//
// Order: a put to this rank itself is there when put() returns. What a put to another rank carries
// is there at once when it has arrived whole; neither the return of put() nor a later collective
// says that it has. Look at the version.
//
// End: the destructor says goodbye to the other ranks and does not wait for them; each may end its
// window when it likes. What still arrives is dropped, and calls on a rank that has ended its
// window are refused as soon as its goodbye is here. Works that were started go on. No call may be
// under way in another thread. A window may outlive its communicator, but then refuses every call
// on another rank.
class Window {
 public:
  virtual ~Window() = default;

  virtual std::uint64_t slot_count() const = 0;
  virtual std::uint64_t slot_bytes() const = 0;

  // Writes a whole slot of a rank, slot_bytes from `data`, with a version of at least 1. The newest
  // version stays, whatever order puts arrive in; of equal versions that of the highest rank. Done
  // when `data` may change again.
  virtual Status put(int peer, std::uint64_t slot, const void* data, std::uint64_t version) = 0;
  virtual Work put_async(int peer, std::uint64_t slot, const void* data, std::uint64_t version) = 0;

  // Copies the own slot, never halves of two puts, and returns its version; 0 (and zeros): never
  // written.
  virtual Result<std::uint64_t> read(std::uint64_t slot, void* data) = 0;

  // Gossip: at the peer, at once for all who look, slot = (slot + data) / 2, and the same bits come
  // back into `data`: the sum of both is kept, to rounding. The slot's version grows by one. The
  // peer takes no part, so any pairing is free of deadlock. Floating-point types; slot_bytes is a
  // multiple of the type's size.
  virtual Status average(int peer, std::uint64_t slot, void* data, DataType type) = 0;
  virtual Work average_async(int peer, std::uint64_t slot, void* data, DataType type) = 0;

 protected:
  Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
};

}  // namespace polyrail
