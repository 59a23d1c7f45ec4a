#include <polyrail/status.hpp>

namespace polyrail {

const char* name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kSystemError:
      return "system error";
    case StatusCode::kInternalError:
      return "internal error";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kInvalidUsage:
      return "invalid usage";
    case StatusCode::kRemoteError:
      return "remote error";
    case StatusCode::kInProgress:
      return "in progress";
    case StatusCode::kTimeout:
      return "timeout";
    case StatusCode::kAborted:
      return "aborted";
  }
  return "unknown";
}

}  // namespace polyrail
