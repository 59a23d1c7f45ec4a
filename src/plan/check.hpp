// Proofs about plans: that they compute the right values, and that nothing races.
//
// Each returns kOk or an error that names the first step or byte range found wrong.
#pragma once

#include <polyrail/status.hpp>

#include "src/plan/plan.hpp"

namespace polyrail {

// Runs the plan with symbols instead of numbers. Every byte of every output must hold each rank's
// contribution to the same element exactly once, combined in the same operand order on all ranks,
// and must be made final exactly once (one rank alone need not).
// Precondition: check_shape() passes.
Status check_values(const Plan& plan);

// What the proof of order may rely on besides dependencies and signals.
struct OrderRules {
  // Bytes for an operation that a rank has not entered yet do not land before it enters it.
  bool receiver_holds_early_bytes = true;
};

// Whether any two accesses to the same bytes of a rank, one of them a write, are ordered, over two
// runs of the plan in a row, the second entered by each rank as soon as its own steps of the first
// are done. Bytes of a put may land from its start until it is done at the receiver. Its source is
// read until the last byte has landed, whether the sender knows of it by the acknowledgement or by
// getting bytes that could not exist otherwise. Steps whose operand is landing may run while it
// lands.
// Precondition: check_shape() passes.
Status check_order(const Plan& plan, const OrderRules& rules = {});

// check_shape(), check_values() and check_order().
Status check(const Plan& plan);

}  // namespace polyrail
