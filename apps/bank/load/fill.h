// SPDX-License-Identifier: Apache-2.0
//
// fill.h - customers and accounts for a bank, made through its front end, and deposits on them, booked in its stores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "apps/kit/load/fill.h"

namespace curtail::bank {

struct FillOptions : apps::FillTarget {
  uint64_t customers = 100;
  uint64_t accounts = 2;         // of each
  uint64_t deposit = 1'000'000;  // cents
};

inline constexpr size_t kWordsBeside = 3;
inline constexpr char kNoSession[] = "-";

// Registers the customers, or logs them in if they are there, has each open the accounts and the card that it lacks, and books an
// opening deposit on each account once, from the bank's own. No service creates money: deposits go to the books in the folder of the
// stores, or to the PostgreSQL that is noted there. Leaves sessions for load tests, whose further words are the accounts, an
// id and an IBAN each, and kWordsBeside: the id of the card, the password, and the token of a session that may end, or kNoSession. Errors: a wrong target, the first call that fails, errors of ShardsIn().
[[nodiscard]] absl::Status Fill(const FillOptions& options);

}  // namespace curtail::bank
