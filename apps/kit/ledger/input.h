// SPDX-License-Identifier: Apache-2.0
//
// input.h - what a ledger takes, as far as that does not depend on its books. For ledger.cc, and for services that keep a
// request before the ledger sees it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "apps/kit/ledger/ledger.h"

namespace curtail::apps::ledger {

// The caller of requests from other shards.
inline constexpr uint64_t kLedger = 0;

// A number of a caller as the database takes it.
inline uint64_t Bounded(uint64_t number) {
  return std::min(number, static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
}

// The entry of an account, or null.
const Entry* Find(const std::vector<Entry>& entries, uint64_t account);

// INVALID_ARGUMENT says what is wrong. `shard` is the ledger's own.
absl::Status CheckId(uint64_t account);
absl::Status CheckCents(int64_t cents, int64_t least);
absl::Status CheckText(std::string_view text);
absl::Status CheckAccount(const LedgerAccount& account);
absl::Status CheckRequest(const LedgerRequest& request);
absl::Status CheckPosting(const Posting& posting, uint32_t shard);
absl::Status CheckTransfer(const Transfer& transfer, uint32_t shard);

// Differs where two requests do.
std::string ContentOf(const Posting& posting);
std::string ContentOf(const Transfer& transfer);

}  // namespace curtail::apps::ledger
