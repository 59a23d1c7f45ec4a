// MemoryFile and Mapping: memory that several processes can map, and its place in this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <polyrail/status.hpp>

#include "src/base/file_descriptor.hpp"

namespace polyrail {

std::size_t page_bytes();
// The next multiple of the page size.
std::size_t round_up_to_page(std::size_t bytes);

// A mapped range, unmapped by the destructor.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

// A file of that size in memory, zeroed, without a name in any file system and sealed so that
// nobody can change its size under a mapping. Its pages are not reserved yet. `label` shows up in
// /proc/<pid>/maps.
Result<FileDescriptor> make_memory_file(const std::string& label, std::size_t bytes);

// Reserves the pages of a range, so that touching them later cannot fail.
Status reserve_pages(const FileDescriptor& file, std::size_t offset_bytes, std::size_t bytes);

// Maps a range of a file for reading and writing, shared with its other users.
Result<Mapping> map_file(const FileDescriptor& file, std::size_t offset_bytes, std::size_t bytes);

// Opens the descriptor that another process has under this number, if that process may be
// inspected by this one (same user, same container). Only files and pipes can be opened so.
Result<FileDescriptor> open_descriptor_of(int pid, int descriptor, int flags);

// Size of a file that can no longer change its size; an error for any other.
Result<std::size_t> sealed_size_bytes(const FileDescriptor& file);

}  // namespace polyrail
