// SPDX-License-Identifier: Apache-2.0
//
// thread_activity.h - what the kernel says of a thread of this process, by its number there. Private to executors.
#pragma once

#include "curtail/base/clock.h"

namespace curtail::internal {

// True if the kernel says that the thread sleeps. False when in doubt.
bool Sleeps(int tid);

// The CPU time that the thread has used; zero when in doubt.
Nanos CpuTimeOf(int tid);

}  // namespace curtail::internal
