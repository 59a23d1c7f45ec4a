// Pump: drives transports during start-up, when there is no engine yet. Slices of operations that
// have not begun stay where they are.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "transports/transport.hpp"

namespace polyrail {

class Pump {
 public:
  explicit Pump(const std::vector<std::unique_ptr<Transport>>& transports)
      : transports_(transports) {}
  // Moves bytes until done() or the deadline (microseconds of now_us); sleeps when there is nothing
  // to do. Returns done().
  bool run_until(Sink& sink, double deadline_us, const std::function<bool()>& done);

 private:
  const std::vector<std::unique_ptr<Transport>>& transports_;
};

}  // namespace polyrail
