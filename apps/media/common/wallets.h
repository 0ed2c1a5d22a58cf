// SPDX-License-Identifier: Apache-2.0
//
// wallets.h - the accounts of `payment-auth`. A wallet has the id of its user, which is above all of these.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "apps/kit/ledger/ledger.h"
#include "curtail/store/sql/session.h"

namespace curtail::media {

inline constexpr uint64_t kEscrow =
    apps::kInTransit + 1;  // what is authorized, and neither captured nor voided
inline constexpr uint64_t kRevenue = apps::kInTransit + 2;   // what users have paid for rentals
inline constexpr uint64_t kDeposits = apps::kInTransit + 3;  // the other side of deposits, which has no limit
inline constexpr int64_t kMostDeposit = 1'000'000'000;

// Checks the books, and that escrow and revenue have the cents of the charges. DATA_LOSS says where not.
absl::Status AuditWallets(SqlSession& s);

}  // namespace curtail::media
