// The C API: a thin shell over the C++ one. Nothing may be thrown across its edge.
#include <polyrail/polyrail.h>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <polyrail/polyrail.hpp>

using polyrail::Bootstrap;
using polyrail::Communicator;
using polyrail::Options;
using polyrail::Result;
using polyrail::Status;
using polyrail::StatusCode;
using polyrail::UniqueId;
using polyrail::Work;

struct polyrailComm {
  std::unique_ptr<Communicator> communicator;
  std::string last_error;
};

// Operations in the order given. Each communicator runs its own in order; a stream that carries
// operations of several communicators waits for the earlier ones before it starts the next.
struct polyrailStream {
  struct Item {
    polyrailComm* comm;
    Work work;
  };
  std::mutex mutex;
  std::vector<Item> items;
  Status failure;
};

static_assert(POLYRAIL_UNIQUE_ID_BYTES == UniqueId::kBytes);

namespace {

constexpr unsigned kConfigMagic = 0x706f6c79u;

// The sentence of this thread's last failure outside of any communicator.
thread_local std::string t_last_error;

polyrailResult_t to_result(const Status& status) {
  return static_cast<polyrailResult_t>(status.code());
}

polyrailResult_t report(polyrailComm* comm, const Status& status) {
  if (!status.is_ok()) {
    t_last_error = status.message();
    if (comm != nullptr) comm->last_error = status.message();
  }
  return to_result(status);
}

Status invalid(const char* function, const std::string& cause) {
  return {StatusCode::kInvalidArgument, std::string(function) + ": " + cause};
}

// Runs `body`, which returns a Status, and turns what it throws into one.
template <typename Body>
polyrailResult_t guard(polyrailComm* comm, const char* function, Body&& body) {
  try {
    return report(comm, body());
  } catch (const std::bad_alloc&) {
    return report(comm, {StatusCode::kSystemError, std::string(function) + ": out of memory"});
  } catch (const std::exception& error) {
    return report(comm, {StatusCode::kInternalError, std::string(function) + ": " + error.what()});
  }
}

Result<Options> read_options(const char* function, const polyrailConfig_t* config) {
  Result<Options> options = polyrail::options_from_environment();
  if (!options.is_ok() || config == nullptr) return options;
  if (config->magic != kConfigMagic || config->size < sizeof(polyrailConfig_t)) {
    return invalid(function, "the config was not made with POLYRAIL_CONFIG_INITIALIZER");
  }
  std::string_view text = config->options == nullptr ? "" : config->options;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return invalid(function, "config: '" + std::string(line) + "' is not name=value");
    }
    const Status status =
        polyrail::set_option(options.value(), line.substr(0, equals), line.substr(equals + 1));
    if (!status.is_ok()) return status;
  }
  return options;
}

Status create(polyrailComm_t* comm, Result<std::unique_ptr<Bootstrap>> bootstrap,
              const Options& options) {
  if (!bootstrap.is_ok()) return bootstrap.status();
  Result<std::unique_ptr<Communicator>> communicator =
      Communicator::create(std::move(bootstrap).value(), options);
  if (!communicator.is_ok()) return communicator.status();
  *comm = new polyrailComm{std::move(communicator).value(), ""};
  return polyrail::ok();
}

}  // namespace

extern "C" {

polyrailResult_t polyrailGetVersion(int* version) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (version == nullptr) return invalid("polyrailGetVersion", "version is null");
    *version = POLYRAIL_VERSION_CODE;
    return {};
  });
}

polyrailResult_t polyrailGetUniqueId(polyrailUniqueId* id) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (id == nullptr) return invalid("polyrailGetUniqueId", "id is null");
    const Result<Options> options = read_options("polyrailGetUniqueId", nullptr);
    if (!options.is_ok()) return options.status();
    const Result<UniqueId> made = polyrail::make_unique_id(options.value());
    if (!made.is_ok()) return made.status();
    const auto bytes = made.value().to_bytes();
    if (!bytes.is_ok()) return bytes.status();
    std::memcpy(id->internal, bytes.value().data(), sizeof id->internal);
    return {};
  });
}

polyrailResult_t polyrailUniqueIdToText(const polyrailUniqueId* id, char* text, size_t bytes) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (id == nullptr) return invalid("polyrailUniqueIdToText", "id is null");
    if (text == nullptr) return invalid("polyrailUniqueIdToText", "text is null");
    const Result<UniqueId> value = UniqueId::from_bytes(
        reinterpret_cast<const std::uint8_t*>(id->internal), sizeof id->internal);
    if (!value.is_ok()) return value.status();
    const Result<std::string> printed = value.value().to_text();
    if (!printed.is_ok()) return printed.status();
    if (printed.value().size() + 1 > bytes) {
      return invalid("polyrailUniqueIdToText",
                     "the text needs " + std::to_string(printed.value().size() + 1) + " bytes");
    }
    std::memcpy(text, printed.value().c_str(), printed.value().size() + 1);
    return {};
  });
}

polyrailResult_t polyrailUniqueIdFromText(const char* text, polyrailUniqueId* id) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (text == nullptr) return invalid("polyrailUniqueIdFromText", "text is null");
    if (id == nullptr) return invalid("polyrailUniqueIdFromText", "id is null");
    const Result<UniqueId> value = UniqueId::from_text(text);
    if (!value.is_ok()) return value.status();
    const auto bytes = value.value().to_bytes();
    if (!bytes.is_ok()) return bytes.status();
    std::memcpy(id->internal, bytes.value().data(), sizeof id->internal);
    return {};
  });
}

polyrailResult_t polyrailCommInitRankConfig(polyrailComm_t* comm, int nranks, polyrailUniqueId id,
                                            int rank, const polyrailConfig_t* config) {
  return guard(nullptr, __func__, [&]() -> Status {
    constexpr const char* kName = "polyrailCommInitRank";
    if (comm == nullptr) return invalid(kName, "comm is null");
    *comm = nullptr;
    if (nranks < 1) return invalid(kName, "nranks is " + std::to_string(nranks));
    if (rank < 0 || rank >= nranks) {
      return invalid(
          kName, "rank " + std::to_string(rank) + " is not below nranks " + std::to_string(nranks));
    }
    const Result<Options> options = read_options(kName, config);
    if (!options.is_ok()) return options.status();
    const Result<UniqueId> value = UniqueId::from_bytes(
        reinterpret_cast<const std::uint8_t*>(id.internal), sizeof id.internal);
    if (!value.is_ok()) return value.status();
    return create(comm, polyrail::join(value.value(), rank, nranks, options.value()),
                  options.value());
  });
}

polyrailResult_t polyrailCommInitRank(polyrailComm_t* comm, int nranks, polyrailUniqueId id,
                                      int rank) {
  return polyrailCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

polyrailResult_t polyrailCommInitEnv(polyrailComm_t* comm, const polyrailConfig_t* config) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (comm == nullptr) return invalid("polyrailCommInitEnv", "comm is null");
    *comm = nullptr;
    const Result<Options> options = read_options("polyrailCommInitEnv", config);
    if (!options.is_ok()) return options.status();
    return create(comm, polyrail::join_from_environment(options.value()), options.value());
  });
}

polyrailResult_t polyrailAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                   polyrailDataType_t datatype, polyrailRedOp_t op,
                                   polyrailComm_t comm, polyrailStream_t stream) {
  if (comm == nullptr) return report(nullptr, invalid("polyrailAllReduce", "comm is null"));
  const auto type = static_cast<polyrail::DataType>(datatype);
  const auto reduce_op = static_cast<polyrail::ReduceOp>(op);
  return guard(comm, __func__, [&]() -> Status {
    if (static_cast<unsigned>(datatype) > 255 || static_cast<unsigned>(op) > 255) {
      return invalid("polyrailAllReduce", "unknown data type or operator");
    }
    Communicator& communicator = *comm->communicator;
    if (stream == nullptr) {
      return communicator.all_reduce(sendbuff, recvbuff, count, type, reduce_op);
    }
    const std::lock_guard lock(stream->mutex);
    for (polyrailStream::Item& item : stream->items) {
      if (item.comm == comm) continue;
      if (Status status = item.work.wait(); !status.is_ok()) return status;
    }
    stream->items.push_back(
        {comm, communicator.all_reduce_async(sendbuff, recvbuff, count, type, reduce_op)});
    return {};
  });
}

polyrailResult_t polyrailStreamCreate(polyrailStream_t* stream) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (stream == nullptr) return invalid("polyrailStreamCreate", "stream is null");
    *stream = new polyrailStream;
    return {};
  });
}

polyrailResult_t polyrailStreamSynchronize(polyrailStream_t stream) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (stream == nullptr) return invalid("polyrailStreamSynchronize", "stream is null");
    const std::lock_guard lock(stream->mutex);
    for (polyrailStream::Item& item : stream->items) {
      const Status status = item.work.wait();
      if (stream->failure.is_ok()) stream->failure = status;
    }
    stream->items.clear();
    return stream->failure;
  });
}

polyrailResult_t polyrailStreamQuery(polyrailStream_t stream) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (stream == nullptr) return invalid("polyrailStreamQuery", "stream is null");
    const std::lock_guard lock(stream->mutex);
    for (polyrailStream::Item& item : stream->items) {
      if (!item.work.is_done()) return {StatusCode::kInProgress, "the stream is not done"};
      const Status status = item.work.wait();
      if (stream->failure.is_ok()) stream->failure = status;
    }
    stream->items.clear();
    return stream->failure;
  });
}

polyrailResult_t polyrailStreamDestroy(polyrailStream_t stream) {
  if (stream == nullptr) {
    return report(nullptr, invalid("polyrailStreamDestroy", "stream is null"));
  }
  const polyrailResult_t result = polyrailStreamSynchronize(stream);
  delete stream;
  return result;
}

polyrailResult_t polyrailCommCount(polyrailComm_t comm, int* count) {
  if (comm == nullptr || count == nullptr) {
    return report(comm, invalid("polyrailCommCount", "comm or count is null"));
  }
  *count = comm->communicator->rank_count();
  return polyrailSuccess;
}

polyrailResult_t polyrailCommUserRank(polyrailComm_t comm, int* rank) {
  if (comm == nullptr || rank == nullptr) {
    return report(comm, invalid("polyrailCommUserRank", "comm or rank is null"));
  }
  *rank = comm->communicator->rank();
  return polyrailSuccess;
}

polyrailResult_t polyrailCommGetAsyncError(polyrailComm_t comm, polyrailResult_t* async_error) {
  if (comm == nullptr || async_error == nullptr) {
    return report(comm, invalid("polyrailCommGetAsyncError", "comm or async_error is null"));
  }
  const Status status = comm->communicator->async_error();
  if (!status.is_ok()) comm->last_error = status.message();
  *async_error = to_result(status);
  return polyrailSuccess;
}

polyrailResult_t polyrailCommFinalize(polyrailComm_t comm) {
  if (comm == nullptr) return report(nullptr, invalid("polyrailCommFinalize", "comm is null"));
  return guard(comm, __func__, [&]() -> Status { return comm->communicator->async_error(); });
}

polyrailResult_t polyrailCommDestroy(polyrailComm_t comm) {
  if (comm == nullptr) return report(nullptr, invalid("polyrailCommDestroy", "comm is null"));
  delete comm;
  return polyrailSuccess;
}

polyrailResult_t polyrailCommAbort(polyrailComm_t comm) {
  if (comm == nullptr) return report(nullptr, invalid("polyrailCommAbort", "comm is null"));
  comm->communicator->abort();
  delete comm;
  return polyrailSuccess;
}

const char* polyrailGetErrorString(polyrailResult_t result) {
  if (result == polyrailUnhandledCudaError) return "unhandled CUDA error";
  return polyrail::name(static_cast<StatusCode>(result));
}

const char* polyrailGetLastError(polyrailComm_t comm) {
  return comm == nullptr ? t_last_error.c_str() : comm->last_error.c_str();
}

polyrailResult_t polyrailMemAlloc(void** ptr, size_t size) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (ptr == nullptr) return invalid("polyrailMemAlloc", "ptr is null");
    const Result<void*> memory = polyrail::mem_alloc(size);
    if (!memory.is_ok()) return memory.status();
    *ptr = memory.value();
    return {};
  });
}

polyrailResult_t polyrailMemFree(void* ptr) {
  return guard(nullptr, __func__, [&]() -> Status { return polyrail::mem_free(ptr); });
}

}  // extern "C"
