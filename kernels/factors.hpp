// The factors of a scaled sum as numbers of the type it is computed in. Free of any instruction
// set.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace polyrail::kernels {

// The nearest Number; of integers the nearest that there is, 0 for NaN.
template <typename Number>
Number nearest(double factor) {
  using Limits = std::numeric_limits<Number>;
  if constexpr (std::is_floating_point_v<Number>) {
    // A NaN without payload, which every rounding leaves one.
    return std::isnan(factor) ? Limits::quiet_NaN() : static_cast<Number>(factor);
  } else {
    if (std::isnan(factor)) return 0;
    const double rounded = std::nearbyint(factor);
    if (rounded <= static_cast<double>(Limits::min())) return Limits::min();
    // The largest of 64 bits is no double; the next one is out of range.
    if (rounded >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<Number>(rounded);
  }
}

// Few factors need no allocation.
template <typename Number>
class Factors {
 public:
  explicit Factors(std::span<const double> factors) {
    if (factors.size() > kFew) many_.resize(factors.size());
    Number* to = factors.size() > kFew ? many_.data() : few_;
    for (std::size_t i = 0; i < factors.size(); ++i) to[i] = nearest<Number>(factors[i]);
    data_ = to;
  }
  Factors(const Factors&) = delete;
  Factors& operator=(const Factors&) = delete;
  const Number* data() const { return data_; }

 private:
  static constexpr std::size_t kFew = 64;
  Number few_[kFew];
  std::vector<Number> many_;
  const Number* data_;
};

}  // namespace polyrail::kernels
