// SPDX-License-Identifier: Apache-2.0
//
// fenced_order.h - the order of waiting requests that gives out the permits of a Fence.
//
// The rules. "Under the mutex" is the executor's mutex, which guards an order.
//
//  F1  A task belongs to the path class that its kind has when Append() brings it, and keeps it as
//      its note (Task::order_note) until its permit is returned. A task without a kind is local.
//  F2  Append() gives permits, so ready() counts a task only if it has one, needs none, or is to
//      be refused. No thread takes a task that waits for a permit, under any model.
//  F3  kStrict: a class has a permit for another task if it uses fewer than its share. kOn: idle
//      permits are lent, as the rules of lending.h say. Classes below their reserve come before
//      others, which take turns.
//  F4  kStrict: all permits together are the runners less the reserve: one in ten, at least one.
//      Under synchronous models runners are threads, so the reserve is of threads that only local
//      tasks, refusals and reception use. The shares fit the permits unless there are more classes
//      than permits: then each has one. kOn: rule L1 of lending.h.
//  F5  The thread that ends a request returns the permit: it counts the end, then looks at the
//      classes that hold tasks back. Announce() names those first, and looks at the ends after it.
//      So one of the two sees the other, and no task waits beside a free permit. If the thread sees
//      a class that may use the permit, it submits an empty list to the executor, or has its
//      thread of the pool look before that takes another task (WaitHint::look).
//  F6  A class holds back FenceOptions::max_waiting tasks. A task that comes then is refused: it
//      comes out at once, shed (rule O4 of order.h), with its class as its note and no permit. kOn:
//      only if the first of those tasks has waited for FenceLending::kStands.
//  F7  Pop() gives refusals and local tasks first, but at most kLocalInARow in a row while a task
//      with a permit is ready. Classes with such tasks take turns.
//  F8  Limits and threads may change at any time. The change holds from the next Append(). A class
//      that uses more permits than it now has begins none until enough have ended.
//  F9  A held task that was abandoned comes out, shed, when it becomes the first of its class. It
//      takes no permit.
//  F10 Each class has the queues of QueueOptions: of its held tasks, and of tasks with a permit;
//      local tasks have one. A held task that is overdue comes out at once, shed, without a permit:
//      Append() and Pop() bring the time. One with a permit that is overdue when its turn comes is
//      shed, too. It keeps the permit until its answer, and its note says so (kShedWithPermit).
#pragma once

#include <memory>

#include "curtail/exec/order.h"
#include "curtail/exec/queue_options.h"
#include "curtail/fence/fence.h"

namespace curtail {

// Local tasks in a row while others are ready (rule F7).
inline constexpr int kLocalInARow = 8;

// The order of kStrict and kOn, or the one of kDryRun: first come, first served, which counts what
// kStrict would have done. The fence outlives it. Allocates nothing after this call.
// REQUIRES: the mode is not kOff; the fence has no other order.
std::unique_ptr<Order> MakeFencedOrder(Fence* fence, const QueueOptions& queue = {});

}  // namespace curtail
