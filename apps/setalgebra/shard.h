// SPDX-License-Identifier: Apache-2.0
//
// shard.h - which part of a collection one leaf holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail::setalgebra {

// A Shard is part `index` of `count` parts of equal size, runs of documents. Value type.
struct Shard {
  // Reads "0/4". Errors: INVALID_ARGUMENT.
  static absl::StatusOr<Shard> Parse(std::string_view text);

  // The documents of the part, of `documents` in all: from begin up to, without it, end. REQUIRES: at most
  // 2^32.
  uint64_t begin(uint64_t documents) const { return documents * index / count; }
  uint64_t end(uint64_t documents) const { return documents * (index + 1) / count; }

  uint32_t index = 0;
  uint32_t count = 1;  // at most 65536
};

}  // namespace curtail::setalgebra
