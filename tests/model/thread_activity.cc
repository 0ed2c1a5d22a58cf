// SPDX-License-Identifier: Apache-2.0
//
// Of the scheduler's threads. None has a CPU of its own to use, so none computes for long.
#include "curtail/exec/internal/thread_activity.h"

#include "tests/model/scheduler.h"

namespace curtail::internal {

bool Sleeps(int tid) { return model::Waits(tid); }

Nanos CpuTimeOf(int) { return Nanos(0); }

}  // namespace curtail::internal
