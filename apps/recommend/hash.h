// SPDX-License-Identifier: Apache-2.0
//
// hash.h - what is random about data, splits and factors, and which shard holds a rating.
#pragma once

#include <cstdint>

#include "curtail/base/shard.h"

namespace curtail::recommend {

// 64 well mixed bits (the finalizer of splitmix64), so that what is random depends on no order and no thread.
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
inline uint64_t Mix(uint64_t a, uint64_t b) { return Mix(Mix(a) ^ b); }

// True if the shard holds what the user thinks of the item. A rating belongs to one by the hash of both, so that each
// leaf knows a part of every user's taste and can say something about anybody (docs/design/recommend.md compares).
inline bool Holds(const Shard& shard, uint32_t user, uint32_t item) {
  return shard.count == 1 || Mix(0x5a4d, uint64_t{user} << 32 | item) % shard.count == shard.index;
}

}  // namespace curtail::recommend
