// EarlySlices: slices of collectives that have not begun here, taken in while this rank waits for a
// message that may be behind them on the same rail. Otherwise they stay in their rail.
//
// Belongs to the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "transports/transport.hpp"

namespace polyrail {

class EarlySlices final {
 public:
  // Memory for them; what does not fit stays in its rail.
  static constexpr std::uint64_t kMostBytes = 16 << 20;

  struct Slice {
    Endpoint* from = nullptr;
    SliceHeader header;
    std::unique_ptr<std::byte[]> bytes;
    bool has_landed = false;
  };

  bool is_empty() const { return slices_.empty(); }
  // Where it lands, or kLater.
  Landing accept(Endpoint& from, const SliceHeader& header);
  // Whether it is one of these that has landed.
  bool on_landed(Endpoint& from, const SliceHeader& header);
  // Calls deliver(slice) for those of an operation that have landed, and forgets them.
  template <typename Deliver>
  void take(std::uint32_t operation, Deliver&& deliver) {
    // Out of the list first: what is delivered may bring about another take.
    std::list<Slice> ready;
    for (auto it = slices_.begin(); it != slices_.end();) {
      const auto here = it++;
      if (here->header.operation != operation || !here->has_landed) continue;
      bytes_ -= here->header.bytes + kOverheadBytes;
      ready.splice(ready.end(), slices_, here);
    }
    for (const Slice& slice : ready) deliver(slice);
  }
  // Forgets all; what is still landing does not land any more.
  void clear();

 private:
  static constexpr std::uint64_t kOverheadBytes = 128;
  std::list<Slice> slices_;  // in the order of arrival
  std::uint64_t bytes_ = 0;
};

}  // namespace polyrail
