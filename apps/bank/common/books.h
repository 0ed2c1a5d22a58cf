// SPDX-License-Identifier: Apache-2.0
//
// books.h - the names under which the shards of the ledger keep their books in the folder of the stores.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "curtail/base/shard.h"

namespace curtail::bank {

// The number of shards is a part of the name. Another number would look for accounts where they are not, so it has books of its
// own.
std::string BooksOf(const Shard& shard);

// Returns how many shards have books in a folder. Errors: NOT_FOUND; FAILED_PRECONDITION: there are books of two numbers.
absl::StatusOr<uint32_t> ShardsIn(const std::string& folder);

}  // namespace curtail::bank
