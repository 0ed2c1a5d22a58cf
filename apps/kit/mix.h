// SPDX-License-Identifier: Apache-2.0
//
// mix.h - numbers that look random and follow from others, so that they depend on no order and no thread.
#pragma once

#include <cstdint>

namespace curtail::apps {

// Returns 64 well mixed bits: the finalizer of splitmix64.
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
inline uint64_t Mix(uint64_t a, uint64_t b) { return Mix(Mix(a) ^ b); }

}  // namespace curtail::apps
