// Reductions of pairs, and products of complex numbers: element by element, on any instruction set.
#include <cstdint>
#include <cstring>

#include "kernels/element.hpp"
#include "kernels/ops.hpp"
#include "kernels/request.hpp"

namespace polyrail::kernels {
namespace {

using one_lane::divided;
using one_lane::make_divider;
using one_lane::Operator;

template <typename T>
Complex<T> finished(Complex<T> value, std::int64_t divide_by) {
  const auto by = make_divider<T>(divide_by);
  return {divided<OneLane>(value.real, by), divided<OneLane>(value.imaginary, by)};
}
template <typename Value, typename Index>
Located<Value, Index> finished(Located<Value, Index> value, std::int64_t) {
  return value;
}

}  // namespace

void run_structs(const Request& request) {
  with_constants(Structs(), request.type, request.op, [&](auto type, auto op) {
    using Element = Stored<type>;
    for (std::size_t offset = 0; offset < request.bytes; offset += sizeof(Element)) {
      const auto element = [&](std::size_t source) {
        Element value;
        std::memcpy(&value, static_cast<const std::uint8_t*>(request.sources[source]) + offset,
                    sizeof value);
        return value;
      };
      Element all = element(0);
      for (std::size_t i = 1; i < request.sources.size(); ++i) {
        all = Operator<op>::template apply<OneLane, Element>(all, element(i));
      }
      all = finished(all, request.divide_by);
      std::memcpy(request.target + offset, &all, sizeof all);
    }
  });
}

}  // namespace polyrail::kernels
