// Copying into memory that another processor will read next.
#pragma once

#include <cstddef>

namespace polyrail::shm {

// memcpy that leaves nothing of the target in this processor's caches: the bytes go to memory. Done
// when it returns: what is published afterwards is seen after them.
void copy_past_caches(std::byte* target, const std::byte* source, std::size_t bytes);

}  // namespace polyrail::shm
