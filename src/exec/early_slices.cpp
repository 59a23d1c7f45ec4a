#include "src/exec/early_slices.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace polyrail {
namespace {

bool is_same(const SliceHeader& a, const SliceHeader& b) {
  return a.operation == b.operation && a.signal == b.signal && a.offset_bytes == b.offset_bytes &&
         a.bytes == b.bytes;
}

}  // namespace

Landing EarlySlices::accept(Endpoint& from, const SliceHeader& header) {
  const std::uint64_t cost = header.bytes + kOverheadBytes;
  if (bytes_ + cost > kMostBytes) return {Landing::How::kLater, nullptr};
  std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[header.bytes + 1]);
  if (bytes == nullptr) return {Landing::How::kLater, nullptr};
  bytes_ += cost;
  std::byte* target = bytes.get();
  slices_.push_back({&from, header, std::move(bytes), false});
  return {Landing::How::kInto, target};
}

bool EarlySlices::on_landed(Endpoint& from, const SliceHeader& header) {
  for (Slice& slice : slices_) {
    if (slice.from != &from || slice.has_landed || !is_same(slice.header, header)) continue;
    slice.has_landed = true;
    return true;
  }
  return false;
}

void EarlySlices::clear() {
  for (const Slice& slice : slices_) {
    if (!slice.has_landed) slice.from->discard_incoming(slice.header.operation);
  }
  slices_.clear();
  bytes_ = 0;
}

}  // namespace polyrail
