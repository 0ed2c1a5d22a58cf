// SPDX-License-Identifier: Apache-2.0
//
// leaving.h - customers who leave the bank, as each service that holds something of theirs remembers them.
//
//  V1  A customer leaves by attempts, which `customer-info` counts. An attempt asks each service to Leave(), and the books to close the
//      accounts that these name. All of this can be taken back.
//  V2  A service that was left opens nothing for the customer. The transaction that opens something checks that; or, if it opens by a
//      saga, the first step of it, and Leave() refuses while such a saga is open.
//  V3  Once all have agreed, `customer-info` decides, in one write. From then on nothing is taken back.
//  V4  If one has refused, each gets Stay(). A message of that attempt which comes later is ABORTED, and changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "apps/kit/jobs/saga.h"
#include "apps/kit/ledger/ledger.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/store/sql/sql.h"
#include "services.pb.h"

namespace curtail::bank {

// The state of a closing at `customer-info`, whose DESIGN has the steps.
enum Closing { kLeaving, kStaying, kStays, kLeft, kClosed };

// A step of the schema of such a service, and of the books.
inline constexpr char kLeavingSchema[] =
    "CREATE TABLE leaving(id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, away INTEGER NOT NULL) STRICT";
// Of the books of a shard.
inline std::vector<std::string> BooksSchema() {
  return {apps::kLedgerSchema, kLeavingSchema, apps::kLedgerForgetsSchema};
}

// For transactions. `id` is a customer; in the books, an account. Attempts are above 0. ABORTED: V4.
absl::Status Leave(SqlSession& s, uint64_t id, uint64_t attempt);
// Sets `*ended` to whether the attempt is the last one that has come here.
absl::Status Stay(SqlSession& s, uint64_t id, uint64_t attempt, bool* ended);
// FAILED_PRECONDITION: the customer leaves, or has left.
absl::Status CheckStays(SqlSession& s, uint64_t customer);
// The same for a step of a saga of the customer, once for its round: DecideOnce().
Coroutine CheckStays(Context& ctx, SqlDatabase& db, const apps::SagaRow& row);

// How a service finds what it holds of the customer ?1.
struct Held {
  const char* what;            // "card"
  const char* list = nullptr;  // SQL for accounts in the books and their owners; null: there are none
  const char* busy = nullptr;  // SQL for ids of what is in flight
  // FAILED_PRECONDITION: the customer has something that is not in the books.
  absl::Status (*check)(SqlSession& s, uint64_t customer) = nullptr;
};
// Answer the methods Leave() and Stay() of a service. `held` and what it names outlive the call.
Coroutine LeaveService(Context& ctx, SqlDatabase& db, const Held& held, const LeaveOrder& order,
                       Holdings* reply);
Coroutine StayAtService(Context& ctx, SqlDatabase& db, const Held& held, const LeaveOrder& order,
                        Holdings* reply);

}  // namespace curtail::bank
