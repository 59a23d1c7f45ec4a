// Waker: ends the sleep of an engine from any thread.
#pragma once

#include <memory>

#include <polyrail/status.hpp>

namespace polyrail {

// Shared by the engine that sleeps on the descriptor and by the works it sleeps for, which may be
// done when that engine is gone already.
class Waker final {
 public:
  static Result<std::shared_ptr<Waker>> create();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  // The descriptor stays readable until clear(), so a sleep that begins after this ends at once.
  void wake();
  void clear();
  int descriptor() const { return descriptor_; }

 private:
  explicit Waker(int descriptor) : descriptor_(descriptor) {}
  const int descriptor_;
};

}  // namespace polyrail
