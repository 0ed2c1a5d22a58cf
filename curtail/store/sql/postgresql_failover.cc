// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. postgresql_group.h has the rules. The steps, each of which a later run finds done or does again:
//
//  1  Look at both servers. Nothing has changed if that refuses.
//  2  End the primary and have its lock. It is asked first, and then sends the standby all that it has; a primary that is
//     stalled is killed, with all its processes.
//  3  Replace the roles. From here on the other server is the primary, whatever ends.
//  4  Promote it.
//  5  Await a write, which the former primary acknowledges as its standby.
#include <poll.h>

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "curtail/base/strings.h"
#include "curtail/store/sql/postgresql.h"
#include "curtail/store/sql/postgresql_group.h"
#include "curtail/store/sql/postgresql_server.h"

namespace curtail {
namespace {

using internal::Ask;
using internal::ConnectTo;
using internal::PostgresqlRoles;
using Standby = PostgresqlRoles::Standby;

constexpr Nanos kLookPatience = std::chrono::seconds(2);
constexpr Nanos kStandbyPatience = std::chrono::seconds(5);  // without it nothing can be done
constexpr Nanos kEndPatience = std::chrono::seconds(10);
constexpr Nanos kAskAgain = std::chrono::seconds(1);
constexpr int kAgainMs = 20;

// Counts the standbys that have caught up and that commits wait for.
std::string FollowedQuery() {
  return Join("SELECT count(*) FROM pg_stat_replication WHERE application_name = '", internal::kStandbyName,
              "' AND state = 'streaming' AND sync_state = 'sync'");
}
// A commit, and so the standby has everything that was committed before.
constexpr char kCommit[] = "SELECT (pg_logical_emit_message(true, 'curtail', ''::text) IS NOT NULL)::int";

absl::Status Refused(std::string_view why) {
  return absl::FailedPreconditionError(Join(why, "; nothing was changed"));
}

struct Looked {
  bool answers = false, in_recovery = false, in_sync = false;
};

Looked LookAt(const PostgresqlGroup& group, size_t server, Nanos patience) {
  Looked looked;
  const auto session = ConnectTo(group, server, patience);
  if (!session.ok()) return looked;
  const absl::StatusOr<int64_t> in_recovery = Ask(**session, internal::kInRecovery);
  const absl::StatusOr<int64_t> followers = Ask(**session, FollowedQuery());
  looked.answers = in_recovery.ok() && followers.ok();
  looked.in_recovery = looked.answers && *in_recovery != 0;
  looked.in_sync = looked.answers && *followers > 0 && Ask(**session, kCommit).ok();
  return looked;
}

// 1. The roles to be. The same ones as now: a failover has not ended, and is finished.
absl::StatusOr<PostgresqlRoles> Wanted(const PostgresqlGroup& group, bool* answers) {
  const absl::StatusOr<std::optional<PostgresqlRoles>> roles = internal::ReadRoles(group);
  if (!roles.ok()) return roles.status();
  if (!roles->has_value()) return Refused(Join("there is no standby: ", group.folder, ".roles is missing"));
  const PostgresqlRoles now = **roles;
  const Looked primary = LookAt(group, now.primary, kLookPatience);
  *answers = primary.answers;
  if (primary.answers && primary.in_recovery) return now;
  const size_t standby = 1 - now.primary;
  const Looked other = LookAt(group, standby, kStandbyPatience);
  if (!other.answers || !other.in_recovery)
    return Refused(Join("replica ", standby, ", the standby, does not serve yet"));
  if (primary.answers && !primary.in_sync)
    return Refused(Join("replica ", standby, ", the standby, does not follow yet"));
  if (!primary.answers && now.standby != Standby::kComplete) {
    return Refused(Join("replica ", now.primary, ", the primary, does not answer, and replica ", standby,
                        " may lack what it acknowledged: let the primary start again"));
  }
  return PostgresqlRoles{.primary = standby, .standby = Standby::kFollows};
}

// 2. Errors: DEADLINE_EXCEEDED.
absl::StatusOr<internal::UniqueFd> EndPrimary(const PostgresqlGroup& group, size_t server, bool answers,
                                              Deadline deadline) {
  const std::string lock = internal::LockOf(group, server);
  const Deadline asking = std::min(deadline, Deadline::In(kEndPatience));
  while (answers && !asking.Expired()) {
    internal::AskToEnd(group, server);  // it may just have started
    auto ended = internal::TakeLock(lock, std::min(asking, Deadline::In(kAskAgain)));
    if (!absl::IsDeadlineExceeded(ended.status())) return ended;
  }
  return internal::TakeLock(lock, deadline, internal::Holders::kKill);
}

// 4. Errors: DEADLINE_EXCEEDED.
absl::Status Promote(const PostgresqlGroup& group, size_t server, Deadline deadline) {
  absl::Status problem;
  while (!deadline.Expired()) {
    const auto session = ConnectTo(group, server, kLookPatience);
    problem = session.status();
    if (session.ok()) {
      const absl::StatusOr<int64_t> in_recovery = Ask(**session, internal::kInRecovery);
      if (in_recovery.ok() && *in_recovery == 0) return absl::OkStatus();
      problem =
          in_recovery.ok() ? Ask(**session, "SELECT pg_promote(false)::int").status() : in_recovery.status();
    }
    poll(nullptr, 0, kAgainMs);
  }
  return absl::DeadlineExceededError(Join(
      "replica ", server, " is to be the primary, and is not yet; repeat the command. ", Message(problem)));
}

// 5. Errors: DEADLINE_EXCEEDED.
absl::Status AwaitWrite(const PostgresqlGroup& group, size_t server, Deadline deadline) {
  absl::Status problem;
  while (!deadline.Expired()) {
    // That its standby has a first write is part of a connection to one of several servers.
    problem = internal::PostgresqlSession::Open(
                  {.address = Join("unix:", group.sockets[0], ",unix:", group.sockets[1]),
                   .schema = "public",
                   .patience = kLookPatience})
                  .status();
    if (problem.ok()) return problem;
  }
  return absl::DeadlineExceededError(Join("replica ", server,
                                          " is the primary, and takes no writes before replica ", 1 - server,
                                          " follows it; its log says why. ", Message(problem)));
}

}  // namespace

absl::Status FailOverPostgresql(const PostgresqlGroup& group, Deadline deadline,
                                const std::function<void(std::string_view)>& say) {
  if (group.sockets.size() != 2) return Refused("the store has one replica, and no standby");
  const auto alone = internal::TakeLock(group.folder + ".failover", Deadline::In(Nanos(0)));
  if (absl::IsDeadlineExceeded(alone.status())) return Refused("another failover is in progress");
  if (!alone.ok()) return alone.status();
  TimePoint begun = Now();
  bool answers = false;
  absl::StatusOr<PostgresqlRoles> roles = Wanted(group, &answers);
  if (!roles.ok()) return roles.status();
  const size_t next = roles->primary, former = 1 - next;
  if (answers) begun = Now();  // it took writes until now
  if (const auto now = internal::ReadRoles(group); now.ok() && (*now)->primary == next) {
    say(Join("a failover to replica ", next, " had begun, and goes on"));
  } else {
    if (!answers) say(Join("replica ", former, " does not answer, and is killed"));
    // No server starts meanwhile.
    const auto starts = internal::TakeLock(internal::StartLockOf(group), deadline);
    if (!starts.ok()) return starts.status();
    const auto fenced = EndPrimary(group, former, answers, deadline);
    if (!fenced.ok()) return fenced.status();
    say(Join("replica ", former, " has ended"));
    if (absl::Status written = internal::WriteRoles(group, *roles); !written.ok()) return written;
  }
  if (absl::Status promoted = Promote(group, next, deadline); !promoted.ok()) return promoted;
  say(Join("replica ", next, " is the primary"));
  if (absl::Status writes = AwaitWrite(group, next, deadline); !writes.ok()) return writes;
  roles->standby = Standby::kComplete;
  if (absl::Status written = internal::WriteRoles(group, *roles); !written.ok()) return written;
  say(Join("replica ", former, " is its standby; no write was possible for ",
           static_cast<int64_t>(InMillis(Now() - begun)), " ms"));
  return absl::OkStatus();
}

}  // namespace curtail
