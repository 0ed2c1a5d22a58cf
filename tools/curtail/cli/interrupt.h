// SPDX-License-Identifier: Apache-2.0
//
// interrupt.h - SIGINT, SIGTERM and SIGHUP as a flag that long work looks at.
#pragma once

#include <atomic>

namespace curtail::tool {

// From now on the first of these signals sets the returned flag, and the second ends the process at once (its
// children die with it, see process.h). Call in main(), once. The flag lives for ever.
const std::atomic<bool>& CatchInterrupts();

}  // namespace curtail::tool
