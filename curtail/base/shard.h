// SPDX-License-Identifier: Apache-2.0
//
// shard.h - which part of an application's data one instance of a service holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail {

inline constexpr size_t kMaxShards = 1024;

// A Shard is part `index` of `count`. Value type.
struct Shard {
  uint32_t index = 0;
  uint32_t count = 1;

  // Parses "0/4". Errors: INVALID_ARGUMENT.
  static absl::StatusOr<Shard> Parse(std::string_view text);
  std::string ToString() const;

  // For data that is dealt in nearly equal runs: this shard's entries are [Begin(entries),
  // End(entries)). REQUIRES: at most 2^32 entries.
  uint64_t Begin(uint64_t entries) const { return entries * index / count; }
  uint64_t End(uint64_t entries) const { return entries * (index + 1) / count; }

  friend bool operator==(const Shard&, const Shard&) = default;
};

}  // namespace curtail
