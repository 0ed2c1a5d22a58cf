// SPDX-License-Identifier: Apache-2.0
//
// testing.h - the one bound on every wait of a test, and what a test knows of its build.
#pragma once

#include "curtail/base/clock.h"

namespace curtail {

// A test that waits longer than this has failed. Long, because sanitizers and busy machines are
// slow.
inline constexpr Nanos kMaxTestWait = std::chrono::seconds(20);

// This build has a sanitizer, of addresses or of threads. For a test that repeats what others do, and so finds no more there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace curtail
