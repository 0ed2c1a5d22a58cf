// SPDX-License-Identifier: Apache-2.0
//
// hash.h - what is random about data, splits and factors, and which shard holds a rating.
#pragma once

#include <cstdint>

#include "curtail/base/mix.h"
#include "curtail/base/shard.h"

namespace curtail::recommend {

// True if the shard holds what the user thinks of the item. A rating belongs to one by the hash of both, so that each
// leaf knows a part of every user's taste and can say something about anybody (docs/design/recommend.md compares).
inline bool Holds(const Shard& shard, uint32_t user, uint32_t item) {
  return shard.count == 1 || Mix(0x5a4d, uint64_t{user} << 32 | item) % shard.count == shard.index;
}

}  // namespace curtail::recommend
