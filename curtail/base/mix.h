// SPDX-License-Identifier: Apache-2.0
//
// mix.h - numbers that look random and follow from others, so that they depend on no order and no
// thread.
//
// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). The
// same numbers on every platform. Not for secrets. Thread-safe, but for the state of NextMix().
#pragma once

#include <cstdint>

namespace curtail {

// The step of splitmix64 from number to number: 2^64 divided by the golden ratio.
inline constexpr uint64_t kMixStep = 0x9e3779b97f4a7c15;

// Returns the finalizer of splitmix64: a bijection that turns neighbours into strangers. 0 stays 0.
constexpr uint64_t Scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Returns the number of splitmix64 that follows the state `x`.
constexpr uint64_t Mix(uint64_t x) { return Scramble(x + kMixStep); }
// Returns a number for the pair.
constexpr uint64_t Mix(uint64_t a, uint64_t b) { return Mix(Mix(a) ^ b); }

// Returns the next number of the sequence that `state` names, and moves it on.
constexpr uint64_t NextMix(uint64_t& state) { return Scramble(state += kMixStep); }

}  // namespace curtail
