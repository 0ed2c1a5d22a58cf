// SPDX-License-Identifier: Apache-2.0
//
// testing.h - the one bound on every wait of a test, the seed and the repeats of random ones, and what a test knows of its build.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "curtail/base/clock.h"

namespace curtail {

// A test that waits longer than this has failed. Long, because sanitizers and busy machines are
// slow.
inline constexpr Nanos kMaxTestWait = std::chrono::seconds(20);

// Between two looks at something that a test waits for, with a bound: leaves the CPU to whoever brings it about.
inline void BetweenLooks(Nanos pause = std::chrono::milliseconds(5)) { std::this_thread::sleep_for(pause); }

// This build has a sanitizer, of addresses or of threads. For a test that repeats what others do, and so finds no more there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// How often a test repeats what it draws at random: `usual`, or `many` times where CURTAIL_LONG is set, as `./dev check long` does.
inline int Repeats(int usual, int many) { return std::getenv("CURTAIL_LONG") != nullptr ? many : usual; }

// The seed of a random test: CURTAIL_TEST_SEED, or a fresh one. Printed, so that a failure can be repeated.
inline uint32_t TestSeed() {
  const char* const given = std::getenv("CURTAIL_TEST_SEED");
  const uint32_t seed =
      given != nullptr ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device()();
  std::printf("CURTAIL_TEST_SEED=%u\n", seed);
  return seed;
}

}  // namespace curtail
