#include "src/comm/window.hpp"

#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "src/exec/windows.hpp"

namespace polyrail {
namespace {

class WindowImpl final : public Window {
 public:
  WindowImpl(std::shared_ptr<Engine> engine, int rank, int rank_count,
             std::shared_ptr<WindowMemory> memory)
      : engine_(std::move(engine)),
        rank_(rank),
        rank_count_(rank_count),
        memory_(std::move(memory)) {}
  ~WindowImpl() override { engine_->remove_window(memory_->id()); }

  std::uint64_t slot_count() const override { return memory_->slot_count(); }
  std::uint64_t slot_bytes() const override { return memory_->slot_bytes(); }

  Status put(int peer, std::uint64_t slot, const void* data, std::uint64_t version) override {
    return put_async(peer, slot, data, version).wait();
  }

  Work put_async(int peer, std::uint64_t slot, const void* data, std::uint64_t version) override {
    if (Status status = check("put", peer, slot, data); !status.is_ok()) return Work(status);
    if (version == 0) return Work(invalid("put", "versions begin with 1"));
    if (peer == rank_) return Work(put_here(slot, data, version));
    Transfer transfer = make_transfer(Transfer::Kind::kPut, peer, slot, data);
    transfer.version = version;
    return start(std::move(transfer));
  }

  Result<std::uint64_t> read(std::uint64_t slot, void* data) override {
    if (Status status = check("read", rank_, slot, data); !status.is_ok()) return status;
    return memory_->read(slot, static_cast<std::byte*>(data));
  }

  Status average(int peer, std::uint64_t slot, void* data, DataType type) override {
    return average_async(peer, slot, data, type).wait();
  }

  Work average_async(int peer, std::uint64_t slot, void* data, DataType type) override {
    if (Status status = check("average", peer, slot, data); !status.is_ok()) return Work(status);
    if (!is_valid(type) || !is_floating_point(type)) {
      return Work(invalid("average", is_valid(type)
                                         ? std::string(name(type)) + " is not a floating-point type"
                                         : "the data type is unknown"));
    }
    if (slot_bytes() % size_bytes(type) != 0) {
      return Work(invalid("average", "a slot of " + std::to_string(slot_bytes()) +
                                         " bytes is no whole number of " +
                                         std::string(name(type))));
    }
    if (peer == rank_) return Work(average_here(slot, data, type));
    Transfer transfer = make_transfer(Transfer::Kind::kAverage, peer, slot, data);
    transfer.target = static_cast<std::byte*>(data);
    transfer.type = type;
    return start(std::move(transfer));
  }

 private:
  Status invalid(const char* call, const std::string& cause) const {
    return {StatusCode::kInvalidArgument,
            std::string("window: ") + call + " on rank " + std::to_string(rank_) + ": " + cause};
  }

  Status check(const char* call, int peer, std::uint64_t slot, const void* data) const {
    if (peer < 0 || peer >= rank_count_) {
      return invalid(call, "there is no rank " + std::to_string(peer) + " among " +
                               std::to_string(rank_count_));
    }
    if (slot >= slot_count()) {
      return invalid(call, "there is no slot " + std::to_string(slot) + " among " +
                               std::to_string(slot_count()));
    }
    if (data == nullptr) return invalid(call, "the data is null");
    return ok();
  }

  Transfer make_transfer(Transfer::Kind kind, int peer, std::uint64_t slot,
                         const void* data) const {
    Transfer transfer;
    transfer.kind = kind;
    transfer.peer = peer;
    transfer.tag = static_cast<std::uint32_t>(slot);
    transfer.source = static_cast<const std::byte*>(data);
    transfer.window = memory_;
    return transfer;
  }

  Work start(Transfer transfer) {
    std::vector<Transfer> transfers;
    transfers.push_back(std::move(transfer));
    auto work = std::make_shared<MessageWork>(engine_, std::move(transfers));
    engine_->start_messages(work);
    return Work(std::move(work));
  }

  Status put_here(std::uint64_t slot, const void* data, std::uint64_t version) {
    std::unique_ptr<WindowBuffer> buffer = memory_->take_buffer();
    if (buffer == nullptr) return no_memory();
    std::memcpy(buffer->bytes.get(), data, slot_bytes());
    memory_->publish(slot, std::move(buffer), version, rank_);
    return ok();
  }

  Status average_here(std::uint64_t slot, void* data, DataType type) {
    const WindowBuffer* result =
        memory_->average(slot, static_cast<const std::byte*>(data), type, rank_);
    if (result == nullptr) return no_memory();
    std::memcpy(data, result->bytes.get(), slot_bytes());
    memory_->release(result);
    return ok();
  }

  Status no_memory() const {
    return {StatusCode::kSystemError, "window: no memory for a slot of " +
                                          std::to_string(slot_bytes()) + " bytes on rank " +
                                          std::to_string(rank_)};
  }

  const std::shared_ptr<Engine> engine_;  // shared with the communicator
  const int rank_;
  const int rank_count_;
  const std::shared_ptr<WindowMemory> memory_;  // shared with the engine
};

struct Shape {
  std::uint64_t slot_count = 0;
  std::uint64_t slot_bytes = 0;
  friend bool operator==(const Shape&, const Shape&) = default;
};

std::string text(const Shape& shape) {
  return std::to_string(shape.slot_count) + " slots of " + std::to_string(shape.slot_bytes) +
         " bytes";
}

// Tells all ranks the shape of this rank's window; returns those of all.
Result<std::vector<Shape>> gather_shapes(Engine& engine, int rank, int rank_count, std::uint32_t id,
                                         const Shape& mine) {
  std::vector<Shape> shapes(rank_count, mine);
  std::vector<Transfer> transfers;
  for (int peer = 0; peer < rank_count; ++peer) {
    if (peer == rank) continue;
    Transfer transfer;
    transfer.purpose = MessagePurpose::kWindowCreation;
    transfer.type = DataType::kUint64;
    transfer.count = sizeof(Shape) / sizeof(std::uint64_t);
    transfer.peer = peer;
    transfer.tag = id;
    transfer.kind = Transfer::Kind::kReceive;
    transfer.target = reinterpret_cast<std::byte*>(&shapes[peer]);
    transfers.push_back(transfer);
    transfer.kind = Transfer::Kind::kSend;
    transfer.source = reinterpret_cast<const std::byte*>(&shapes[rank]);
    transfers.push_back(transfer);
  }
  Status status = engine.run_messages(std::make_shared<MessageWork>(nullptr, std::move(transfers)));
  if (!status.is_ok()) return status;
  return shapes;
}

}  // namespace

Result<std::unique_ptr<Window>> create_window(std::shared_ptr<Engine> engine, int rank,
                                              int rank_count, std::uint32_t id,
                                              std::uint64_t slot_count, std::uint64_t slot_bytes) {
  const Shape mine{slot_count, slot_bytes};
  const auto failed = [&](StatusCode code, const std::string& cause) {
    return Status(code, "create_window on rank " + std::to_string(rank) + ": " + cause);
  };
  // Not refused before the others know: they would wait.
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 56;
  const bool is_sound = slot_count > 0 && slot_bytes > 0 &&
                        slot_count <= std::numeric_limits<std::uint32_t>::max() &&
                        slot_bytes <= kMostBytes / slot_count;
  std::unique_ptr<Window> window;
  std::string cause = is_sound ? "" : text(mine) + " make no window";
  try {
    if (is_sound) {
      auto memory = std::make_shared<WindowMemory>(id, rank_count, slot_count, slot_bytes);
      engine->add_window(memory);
      window = std::make_unique<WindowImpl>(engine, rank, rank_count, std::move(memory));
    }
  } catch (const std::bad_alloc&) {
    cause = "no memory for " + text(mine);
  } catch (const std::length_error&) {
    cause = "no memory for " + text(mine);
  }
  const Shape told = window == nullptr ? Shape{} : mine;
  Result<std::vector<Shape>> shapes = gather_shapes(*engine, rank, rank_count, id, told);
  if (!shapes.is_ok()) return shapes.status();
  if (window == nullptr) {
    return failed(is_sound ? StatusCode::kSystemError : StatusCode::kInvalidArgument, cause);
  }
  for (int peer = 0; peer < rank_count; ++peer) {
    const Shape& theirs = shapes.value()[peer];
    if (theirs == mine) continue;
    return failed(StatusCode::kInvalidUsage,
                  "the ranks do not agree: rank " + std::to_string(rank) + " asks for " +
                      text(mine) + ", rank " + std::to_string(peer) +
                      (theirs == Shape{} ? " has failed" : " for " + text(theirs)));
  }
  return window;
}

}  // namespace polyrail
