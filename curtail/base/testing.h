// SPDX-License-Identifier: Apache-2.0
//
// testing.h - the one bound on every wait of a test.
#pragma once

#include "curtail/base/clock.h"

namespace curtail {

// A test that waits longer than this has failed. Long, because sanitizers and busy machines are
// slow.
inline constexpr Nanos kMaxTestWait = std::chrono::seconds(20);

}  // namespace curtail
