#include "src/bootstrap/reserved.hpp"

#include <algorithm>
#include <deque>
#include <mutex>

namespace polyrail::bootstrap {
namespace {

constexpr std::size_t kMostKept = 64;

struct Table {
  struct Row {
    UniqueId id;
    std::vector<BoundSocket> sockets;
  };
  std::mutex mutex;
  std::deque<Row> rows;  // oldest first
};

Table& table() {
  static Table the_table;
  return the_table;
}

}  // namespace

void keep_sockets(const UniqueId& id, std::vector<BoundSocket> sockets) {
  const std::lock_guard lock(table().mutex);
  if (table().rows.size() == kMostKept) table().rows.pop_front();
  table().rows.push_back({id, std::move(sockets)});
}

std::vector<BoundSocket> take_sockets(const UniqueId& id) {
  const std::lock_guard lock(table().mutex);
  auto& rows = table().rows;
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const auto& other) { return other.id == id; });
  if (row == rows.end()) return {};
  std::vector<BoundSocket> sockets = std::move(row->sockets);
  rows.erase(row);
  return sockets;
}

}  // namespace polyrail::bootstrap
