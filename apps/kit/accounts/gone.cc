// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/gone.h"

#include <array>
#include <span>

#include "apps/kit/once.h"

namespace curtail::apps {

absl::Status GoneError() { return absl::UnauthenticatedError("the account was deleted"); }
absl::Status OtherGoneError() { return absl::NotFoundError("the account of the other user was deleted"); }

absl::Status CheckThere(SqlSession& s, uint64_t user) { return CheckBothThere(s, user, user); }

absl::Status CheckBothThere(SqlSession& s, uint64_t user, uint64_t other) {
  const std::array<SqlValue, 2> users = {user, other};
  std::array<bool, 2> gone = {};
  absl::Status status =
      s.QueryEach("SELECT 1 FROM gone WHERE user = ?1", 1, std::span(users).first(user == other ? 1 : 2),
                  [&](size_t run, const SqlRow&) { gone[run] = true; });
  if (!status.ok()) return status;
  if (gone[0]) return GoneError();
  return gone[1] ? OtherGoneError() : absl::OkStatus();
}

absl::Status NoteGone(SqlSession& s, uint64_t user) {
  absl::Status status = s.Execute("INSERT INTO gone(user) VALUES (?1) ON CONFLICT DO NOTHING", {user});
  return status.ok() ? ForgetRequests(s, user) : status;
}

absl::Status DeleteSome(SqlSession& s, uint64_t user, std::initializer_list<std::string_view> statements,
                        bool* more) {
  for (const std::string_view sql : statements) {
    if (absl::Status status = s.Execute(sql, {user, kMostForgotten}); !status.ok()) return status;
    *more = *more || s.changes() == kMostForgotten;
  }
  return absl::OkStatus();
}

}  // namespace curtail::apps
