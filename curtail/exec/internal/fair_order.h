// SPDX-License-Identifier: Apache-2.0
//
// fair_order.h - an order whose flows take turns, so that one with many tasks delays the others by
// little.
//
// Stochastic fairness queueing (McKenney, INFOCOM 1990): a fixed number of queues, each first come,
// first served. Tasks of one flow (Task::flow()) share a queue, flows whose numbers are equal
// modulo the number of queues do, too. Queues that have tasks give out one at a turn.
#pragma once

#include <memory>

#include "curtail/exec/order.h"

namespace curtail {

// Allocates nothing after this call. All steps take constant time, but for TakeAll().
std::unique_ptr<Order> MakeFairOrder();

}  // namespace curtail
