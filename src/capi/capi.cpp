// The C API: unique ids, errors and memory, which need no communicator.
#include <polyrail/polyrail.h>

#include <cstring>

#include "src/capi/shell.hpp"

using namespace polyrail;
using namespace polyrail::capi;

static_assert(POLYRAIL_UNIQUE_ID_BYTES == UniqueId::kBytes);

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
    const Result<Options> options = options_from_environment();
    if (!options.is_ok()) return options.status();
    const Result<UniqueId> made = make_unique_id(options.value());
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

const char* polyrailGetErrorString(polyrailResult_t result) {
  if (result == polyrailUnhandledCudaError) return "unhandled CUDA error";
  return name(static_cast<StatusCode>(result));
}

const char* polyrailGetLastError(polyrailComm_t comm) {
  if (comm == nullptr) return last_error();
  // The caller's own copy, which no other thread changes.
  thread_local std::string t_copy;
  const std::lock_guard lock(comm->error_mutex);
  t_copy = comm->last_error;
  return t_copy.c_str();
}

polyrailResult_t polyrailMemAlloc(void** ptr, size_t size) {
  return guard(nullptr, __func__, [&]() -> Status {
    if (ptr == nullptr) return invalid("polyrailMemAlloc", "ptr is null");
    const Result<void*> memory = mem_alloc(size);
    if (!memory.is_ok()) return memory.status();
    *ptr = memory.value();
    return {};
  });
}

polyrailResult_t polyrailMemFree(void* ptr) {
  return guard(nullptr, __func__, [&]() -> Status { return mem_free(ptr); });
}

}  // extern "C"
