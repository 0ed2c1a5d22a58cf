// SPDX-License-Identifier: Apache-2.0
//
// gone.h - users who were deleted, as a service remembers them.
//
// A write of a user may be on its way while the user is deleted. So a deleted user leaves its id behind,
// by which the service refuses what comes late: no order of the two leaves something of the user.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/store/sql/sql.h"

namespace curtail::apps {

// A step of the schema of each service that keeps something of users.
inline constexpr char kGoneSchema[] = "CREATE TABLE gone(user INTEGER PRIMARY KEY) STRICT";

// Rows that one statement deletes at most.
inline constexpr int kMostForgotten = 1000;

// The errors of a deleted user, and of another that means it.
absl::Status GoneError();
absl::Status OtherGoneError();

// For the transaction that writes what `user` does. GoneError(): it was deleted. Where most writes change a row, their own
// statement asks `gone`, and this says why none was changed: a server is asked once less.
absl::Status CheckThere(SqlSession& s, uint64_t user);
// The same for what it does about another. OtherGoneError(): that one was deleted.
absl::Status CheckBothThere(SqlSession& s, uint64_t user, uint64_t other);

// For Forgetting(). The names of its requests go, too: REQUIRES kOnceSchema (apps/kit/once.h).
absl::Status NoteGone(SqlSession& s, uint64_t user);

// Notes that the user is gone, and deletes what there is of it: runs `piece(session, &more)`, each time in a
// transaction of its own, until one has not set `more`. So other writes come between. Ends with the first
// error. A repetition goes on.
template <class Piece>
Coroutine Forgetting(SqlDatabase& db, Deadline deadline, uint64_t user, Piece piece) {
  bool more = true;
  while (more) {
    absl::Status status = co_await db.Writing(deadline, [&](SqlSession& s) {
      more = false;
      absl::Status noted = NoteGone(s, user);
      return noted.ok() ? piece(s, &more) : noted;
    });
    if (!status.ok()) co_return status;
  }
  co_return absl::OkStatus();
}

// For a piece of Forgetting(). Runs statements, each of which deletes rows of the user ?1, at most ?2, which
// is kMostForgotten. Sets `*more` if one deleted so many.
absl::Status DeleteSome(SqlSession& s, uint64_t user, std::initializer_list<std::string_view> statements,
                        bool* more);

}  // namespace curtail::apps
