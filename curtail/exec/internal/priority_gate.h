// SPDX-License-Identifier: Apache-2.0
//
// priority_gate.h - an order that refuses what its server does not admit, ahead of another order.
#pragma once

#include <memory>

#include "curtail/exec/internal/priority_limit.h"
#include "curtail/exec/order.h"

namespace curtail {

// Requests that `limit` admits wait in `order`. Others come out at once, shed. The limit outlives
// the order. Allocates nothing after this call.
std::unique_ptr<Order> MakePriorityGate(PriorityLimit* limit, std::unique_ptr<Order> order);

}  // namespace curtail
