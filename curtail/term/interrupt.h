// SPDX-License-Identifier: Apache-2.0
//
// interrupt.h - SIGINT, SIGTERM and SIGHUP as a flag that long work looks at.
#pragma once

#include <atomic>

#include "curtail/base/clock.h"

namespace curtail {

// From now on the first of these signals sets the returned flag, and the second ends the process at
// once (its children die with it, see process.h). Call in main(), once. The flag lives for ever.
const std::atomic<bool>& CatchInterrupts();

// Returns at `when`, or false soon after `stop` is set.
bool WaitUntil(TimePoint when, const std::atomic<bool>& stop);

}  // namespace curtail
