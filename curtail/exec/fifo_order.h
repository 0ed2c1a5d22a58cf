// SPDX-License-Identifier: Apache-2.0
//
// fifo_order.h - the default order: requests run in the order in which they came, and none is shed.
#pragma once

#include <memory>

#include "curtail/exec/order.h"

namespace curtail {

// Allocates nothing after this call.
std::unique_ptr<Order> MakeFifoOrder();

}  // namespace curtail
