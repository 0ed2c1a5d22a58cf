// SPDX-License-Identifier: Apache-2.0
//
// shard.h - which ratings a leaf holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail::recommend {

// 64 well mixed bits (the finalizer of splitmix64): what is random about data, splits and factors comes from
// it, so that it depends on no order and no thread.
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
inline uint64_t Mix(uint64_t a, uint64_t b) { return Mix(Mix(a) ^ b); }

inline constexpr size_t kMaxShards = 1024;

// A Shard is part `index` of `count`. A rating belongs to one by the hash of its user and its item, so that
// each leaf knows a part of every user's taste and can say something about anybody (docs/design/recommend.md
// compares). Value type.
struct Shard {
  uint32_t index = 0;
  uint32_t count = 1;

  // Parses "0/4". Errors: INVALID_ARGUMENT.
  static absl::StatusOr<Shard> Parse(std::string_view text);
  std::string ToString() const;

  bool Holds(uint32_t user, uint32_t item) const {
    return count == 1 || Mix(0x5a4d, uint64_t{user} << 32 | item) % count == index;
  }
  friend bool operator==(const Shard&, const Shard&) = default;
};

}  // namespace curtail::recommend
