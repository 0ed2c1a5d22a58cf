// SPDX-License-Identifier: Apache-2.0
//
// fifo_order.h - the default order: one queue, first come, first served, unless its options say
// otherwise.
#pragma once

#include <memory>

#include "curtail/exec/order.h"
#include "curtail/exec/queue_options.h"

namespace curtail {

// Allocates nothing after this call.
std::unique_ptr<Order> MakeFifoOrder(const QueueOptions& options = {});

}  // namespace curtail
