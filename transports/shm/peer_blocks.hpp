// PeerBlocks: memory of another process's mem_alloc, mapped here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <polyrail/status.hpp>

#include "src/base/memory_file.hpp"
#include "transports/shm/layout.hpp"

namespace polyrail::shm {

class PeerBlocks {
 public:
  explicit PeerBlocks(int pid) : pid_(pid) {}

  // The place of `bytes` that lie in one of the peer's blocks; maps the block at the first
  // call. Valid until the next call, and as long as the peer's slice is not acknowledged.
  Result<const std::byte*> find(const SharedPlace& place, std::size_t bytes);

 private:
  // Kept so many: enough for the buffers of a training step; each costs address space only.
  static constexpr std::size_t kBlocksMost = 64;

  struct Block {
    std::uint64_t id = 0;
    Mapping mapping;
  };

  int pid_;
  std::vector<Block> blocks_;  // the one used last at the end
};

}  // namespace polyrail::shm
