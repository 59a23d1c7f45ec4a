// The C API: messages between two ranks, and windows.
#include "src/capi/groups.hpp"

using namespace polyrail;
using namespace polyrail::capi;

struct polyrailWindow {
  std::unique_ptr<Window> window;
};

namespace {

template <typename Make>
polyrailResult_t start_message(polyrailComm* comm, const char* function,
                               polyrailDataType_t datatype, polyrailStream* stream, Make&& make) {
  return start_on(comm, function, [&]() -> Status {
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    return submit(*comm, make(type.value()), stream);
  });
}

// What blocks until other ranks do the same: in an open group it runs at the end, beside those of
// other communicators, so that one thread may call it for several ranks.
Status run_or_record(polyrailComm* comm, std::function<Status()> body) {
  OpenGroup* const group = OpenGroup::find();
  if (group == nullptr) return body();
  group->add_blocking(comm, std::move(body));
  return ok();
}

// Runs body(window); windows belong to no handle whose last error could be set.
template <typename Body>
polyrailResult_t with_window(polyrailWindow* window, const char* function, Body&& body) {
  return guard(nullptr, function, [&]() -> Status {
    if (window == nullptr) return invalid(function, "window is null");
    return body(*window->window);
  });
}

}  // namespace

extern "C" {

polyrailResult_t polyrailSend(const void* sendbuff, size_t count, polyrailDataType_t datatype,
                              int peer, polyrailComm_t comm, polyrailStream_t stream) {
  return start_message(comm, __func__, datatype, stream,
                       [&](DataType type) { return Message::send(sendbuff, count, type, peer); });
}

polyrailResult_t polyrailRecv(void* recvbuff, size_t count, polyrailDataType_t datatype, int peer,
                              polyrailComm_t comm, polyrailStream_t stream) {
  return start_message(comm, __func__, datatype, stream, [&](DataType type) {
    return Message::receive(recvbuff, count, type, peer);
  });
}

polyrailResult_t polyrailSendTagged(const void* sendbuff, size_t count, polyrailDataType_t datatype,
                                    int peer, uint32_t tag, polyrailComm_t comm,
                                    polyrailStream_t stream) {
  return start_message(comm, __func__, datatype, stream, [&](DataType type) {
    return Message::send(sendbuff, count, type, peer, tag);
  });
}

polyrailResult_t polyrailRecvTagged(void* recvbuff, size_t count, polyrailDataType_t datatype,
                                    int peer, uint32_t tag, polyrailComm_t comm,
                                    polyrailStream_t stream) {
  return start_message(comm, __func__, datatype, stream, [&](DataType type) {
    return Message::receive(recvbuff, count, type, peer, tag);
  });
}

polyrailResult_t polyrailPairwiseAverage(void* buff, size_t count, polyrailDataType_t datatype,
                                         int peer, polyrailComm_t comm) {
  const char* function = __func__;
  return with(comm, function, [&](Communicator& communicator) -> Status {
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    const auto body = [&communicator, buff, count, type = type.value(), peer] {
      return communicator.pairwise_average(buff, count, type, peer);
    };
    return run_or_record(comm, body);
  });
}

polyrailResult_t polyrailExchange(const void* sendbuff, void* recvbuff, size_t count,
                                  polyrailDataType_t datatype, int peer, polyrailComm_t comm) {
  const char* function = __func__;
  return with(comm, function, [&](Communicator& communicator) -> Status {
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    const auto body = [&communicator, sendbuff, recvbuff, count, type = type.value(), peer] {
      return communicator.exchange(sendbuff, recvbuff, count, type, peer);
    };
    return run_or_record(comm, body);
  });
}

polyrailResult_t polyrailWindowCreate(polyrailWindow_t* window, size_t slots, size_t bytes,
                                      polyrailComm_t comm) {
  const char* function = __func__;
  return with(comm, function, [&](Communicator& communicator) -> Status {
    if (window == nullptr) return invalid(function, "window is null");
    *window = nullptr;
    const auto body = [&communicator, window, slots, bytes]() -> Status {
      Result<std::unique_ptr<Window>> made = communicator.create_window(slots, bytes);
      if (!made.is_ok()) return made.status();
      *window = new polyrailWindow{std::move(made).value()};
      return ok();
    };
    return run_or_record(comm, body);
  });
}

polyrailResult_t polyrailWindowPut(polyrailWindow_t window, int peer, size_t slot, const void* data,
                                   uint64_t version) {
  return with_window(window, __func__,
                     [&](Window& own) { return own.put(peer, slot, data, version); });
}

polyrailResult_t polyrailWindowRead(polyrailWindow_t window, size_t slot, void* data,
                                    uint64_t* version) {
  const char* function = __func__;
  return with_window(window, function, [&](Window& own) -> Status {
    if (version == nullptr) return invalid(function, "version is null");
    const Result<std::uint64_t> read = own.read(slot, data);
    if (!read.is_ok()) return read.status();
    *version = read.value();
    return ok();
  });
}

polyrailResult_t polyrailWindowAverage(polyrailWindow_t window, int peer, size_t slot, void* data,
                                       polyrailDataType_t datatype) {
  const char* function = __func__;
  return with_window(window, function, [&](Window& own) -> Status {
    const Result<DataType> type = to_type(function, datatype);
    if (!type.is_ok()) return type.status();
    return own.average(peer, slot, data, type.value());
  });
}

polyrailResult_t polyrailWindowDestroy(polyrailWindow_t window) {
  const char* function = __func__;
  return guard(nullptr, function, [&]() -> Status {
    if (window == nullptr) return invalid(function, "window is null");
    delete window;
    return ok();
  });
}

}  // extern "C"
