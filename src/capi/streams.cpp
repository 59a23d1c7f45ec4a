// The C API: streams and events.
#include <mutex>

#include "src/capi/shell.hpp"

using namespace polyrail;
using namespace polyrail::capi;

// One thread may record it again while others look at it.
struct polyrailEvent {
  std::mutex mutex;
  Event event;

  Event get() {
    const std::lock_guard lock(mutex);
    return event;
  }
};

extern "C" {

polyrailResult_t polyrailStreamCreate(polyrailStream_t* stream) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (stream == nullptr) return invalid("polyrailStreamCreate", "stream is null");
    *stream = new polyrailStream;
    return ok();
  });
}

polyrailResult_t polyrailStreamSynchronize(polyrailStream_t stream) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (stream == nullptr) return invalid("polyrailStreamSynchronize", "stream is null");
    return stream->stream.synchronize();
  });
}

polyrailResult_t polyrailStreamQuery(polyrailStream_t stream) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (stream == nullptr) return invalid("polyrailStreamQuery", "stream is null");
    const bool is_done = stream->stream.is_done();
    Status failure = stream->stream.failure();
    if (!failure.is_ok() || is_done) return failure;
    return {StatusCode::kInProgress, "the stream is not done"};
  });
}

polyrailResult_t polyrailStreamWaitEvent(polyrailStream_t stream, polyrailEvent_t event) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (stream == nullptr || event == nullptr) {
      return invalid("polyrailStreamWaitEvent", "stream or event is null");
    }
    stream->stream.wait(event->get());
    return ok();
  });
}

polyrailResult_t polyrailStreamDestroy(polyrailStream_t stream) {
  const polyrailResult_t result = guard(nullptr, __func__, [&]() -> Status {
    if (stream == nullptr) return invalid("polyrailStreamDestroy", "stream is null");
    return stream->stream.synchronize();
  });
  delete stream;
  return result;
}

polyrailResult_t polyrailEventCreate(polyrailEvent_t* event) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (event == nullptr) return invalid("polyrailEventCreate", "event is null");
    *event = new polyrailEvent;
    return ok();
  });
}

polyrailResult_t polyrailEventRecord(polyrailEvent_t event, polyrailStream_t stream) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (event == nullptr || stream == nullptr) {
      return invalid("polyrailEventRecord", "event or stream is null");
    }
    Event recorded = stream->stream.record();
    const std::lock_guard lock(event->mutex);
    event->event = std::move(recorded);
    return ok();
  });
}

polyrailResult_t polyrailEventQuery(polyrailEvent_t event) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (event == nullptr) return invalid("polyrailEventQuery", "event is null");
    Event recorded = event->get();
    if (!recorded.is_done()) return {StatusCode::kInProgress, "the event is not done"};
    return recorded.wait();
  });
}

polyrailResult_t polyrailEventSynchronize(polyrailEvent_t event) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (event == nullptr) return invalid("polyrailEventSynchronize", "event is null");
    return event->get().wait();
  });
}

polyrailResult_t polyrailEventDestroy(polyrailEvent_t event) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (event == nullptr) return invalid("polyrailEventDestroy", "event is null");
    delete event;
    return ok();
  });
}

}  // extern "C"
