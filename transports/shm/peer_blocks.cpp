#include "transports/shm/peer_blocks.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace polyrail::shm {

Result<const std::byte*> PeerBlocks::find(const SharedPlace& place, std::size_t bytes) {
  const auto is_wanted = [&](const Block& block) { return block.id == place.block_id; };
  auto found = blocks_.end();
  if (!blocks_.empty() && is_wanted(blocks_.back())) {
    found = std::prev(blocks_.end());
  } else if (found = std::find_if(blocks_.begin(), blocks_.end(), is_wanted);
             found != blocks_.end()) {
    std::rotate(found, std::next(found), blocks_.end());
    found = std::prev(blocks_.end());
  } else {
    const auto file = open_descriptor_of(pid_, place.descriptor, O_RDWR);
    if (!file.is_ok()) return file.status();
    const auto size = sealed_size_bytes(file.value());
    if (!size.is_ok()) return size.status();
    auto mapping = map_file(file.value(), 0, size.value());
    if (!mapping.is_ok()) return mapping.status();
    if (blocks_.size() == kBlocksMost) blocks_.erase(blocks_.begin());
    blocks_.push_back({place.block_id, std::move(mapping).value()});
    found = std::prev(blocks_.end());
  }
  const Mapping& mapping = found->mapping;
  if (place.offset_bytes > mapping.bytes() || bytes > mapping.bytes() - place.offset_bytes) {
    return Status(StatusCode::kRemoteError,
                  "a peer refers to bytes beyond the end of its shared memory");
  }
  return mapping.base() + place.offset_bytes;
}

}  // namespace polyrail::shm
