// SPDX-License-Identifier: Apache-2.0
#include "apps/media/common/wallets.h"

#include "curtail/base/strings.h"
#include "rentals.pb.h"

namespace curtail::media {
namespace {

absl::Status CheckBalance(SqlSession& s, uint64_t account, Charge::State state) {
  int64_t balance = 0, expected = 0;
  absl::Status status = s.Query(
      "SELECT (SELECT coalesce(max(balance), 0) FROM accounts WHERE id = ?1),"
      " (SELECT CAST(coalesce(sum(cents), 0) AS INTEGER) FROM charges WHERE state = ?2)",
      {account, int{state}}, [&](const SqlRow& row) {
        balance = row.Integer(0);
        expected = row.Integer(1);
      });
  if (!status.ok() || balance == expected) return status;
  return absl::DataLossError(Join("account ", account, " has ", balance,
                                  " cents, and its charges, which are ", Charge::State_Name(state),
                                  ", sum to ", expected));
}

}  // namespace

absl::Status AuditWallets(SqlSession& s) {
  absl::Status status = apps::Ledger::Audit(s);
  if (status.ok()) status = CheckBalance(s, kEscrow, Charge::HELD);
  return status.ok() ? CheckBalance(s, kRevenue, Charge::CAPTURED) : status;
}

}  // namespace curtail::media
