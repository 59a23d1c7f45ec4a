#include "src/base/shared_memory.hpp"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace polyrail {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::uintptr_t, SharedBlockHandle> blocks;  // by address of the first byte
  std::uint64_t last_id = 0;
  std::atomic<std::uint64_t> version{0};  // changes with `blocks`
};

// Never destroyed: memory may be freed by destructors that run after main.
Table& table() {
  static Table* const instance = new Table;
  return *instance;
}

std::uintptr_t address(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace

SharedBlock::~SharedBlock() {
  // Peers that have mapped the file keep it alive; without this they would keep its pages, too.
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
              static_cast<off_t>(mapping_.bytes()));
}

SharedBlockHandle SharedMemoryView::find(const std::byte* memory, std::size_t bytes) {
  Table& all = table();
  if (all.version.load(std::memory_order_acquire) != version_) {
    const std::lock_guard lock(all.mutex);
    version_ = all.version.load(std::memory_order_relaxed);
    ranges_.clear();
    for (const auto& [begin, block] : all.blocks) {
      ranges_.push_back({begin, begin + block->bytes(), block});
    }
  }
  const auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), address(memory),
      [](std::uintptr_t place, const Range& range) { return place < range.begin; });
  if (after == ranges_.begin()) return nullptr;
  const Range& range = *std::prev(after);
  if (address(memory) >= range.end || bytes > range.end - address(memory)) return nullptr;
  return range.block.lock();
}

Result<void*> mem_alloc(std::size_t bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 46;  // of an address space of 47 bits
  if (bytes > kMost) {
    return Status(StatusCode::kInvalidArgument,
                  "mem_alloc of " + std::to_string(bytes) + " bytes: more than can be addressed");
  }
  const std::size_t size_bytes = round_up_to_page(std::max<std::size_t>(bytes, 1));
  auto file = make_memory_file("polyrail", size_bytes);
  if (!file.is_ok()) return file.status();
  if (const Status reserved = reserve_pages(file.value(), 0, size_bytes); !reserved.is_ok()) {
    return reserved;
  }
  auto mapping = map_file(file.value(), 0, size_bytes);
  if (!mapping.is_ok()) return mapping.status();
  void* const memory = mapping.value().base();

  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.blocks[address(memory)] = std::make_shared<const SharedBlock>(
      ++all.last_id, std::move(file).value(), std::move(mapping).value());
  all.version.fetch_add(1, std::memory_order_release);
  return memory;
}

Status mem_free(void* memory) {
  if (memory == nullptr) return ok();
  SharedBlockHandle block;  // let go after the lock: unmapping takes time
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.blocks.find(address(memory));
  if (found == all.blocks.end()) {
    return {StatusCode::kInvalidArgument, "mem_free of memory that mem_alloc did not return"};
  }
  block = std::move(found->second);
  all.blocks.erase(found);
  all.version.fetch_add(1, std::memory_order_release);
  return ok();
}

}  // namespace polyrail
