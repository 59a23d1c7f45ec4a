// Memory of mem_alloc: which blocks there are, so that a transport can send a reference to them
// instead of their bytes.
//
// The table of blocks is the one thing in Polyrail that belongs to the process and not to a
// communicator, as the heap does: mem_free gets nothing but a pointer, and memory allocated before
// a communicator exists must be of use to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <polyrail/communicator.hpp>
#include <polyrail/status.hpp>

#include "src/base/memory_file.hpp"

namespace polyrail {

// One allocation: a sealed memory file and its mapping in this process. Its pages go back to the
// system when the last owner lets go, even if another process still has the file mapped.
class SharedBlock {
 public:
  SharedBlock(std::uint64_t id, FileDescriptor file, Mapping mapping)
      : id_(id), file_(std::move(file)), mapping_(std::move(mapping)) {}
  ~SharedBlock();
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  std::uint64_t id() const { return id_; }  // unique in this process, never used again
  int descriptor() const { return file_.get(); }
  std::byte* base() const { return mapping_.base(); }
  std::size_t bytes() const { return mapping_.bytes(); }

 private:
  const std::uint64_t id_;
  FileDescriptor file_;
  Mapping mapping_;
};

// Shared by the table, until mem_free, and by every slice under way that refers to the block.
using SharedBlockHandle = std::shared_ptr<const SharedBlock>;

// A component's own view of the table. One thread at a time; any number of views.
class SharedMemoryView {
 public:
  // The block in which all of the range lies; null if it is ordinary memory. Takes no lock unless
  // memory has been allocated or freed since the last call.
  SharedBlockHandle find(const std::byte* memory, std::size_t bytes);

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::weak_ptr<const SharedBlock> block;
  };

  std::uint64_t version_ = 0;
  std::vector<Range> ranges_;  // ascending
};

}  // namespace polyrail
