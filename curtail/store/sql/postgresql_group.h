// SPDX-License-Identifier: Apache-2.0
//
// postgresql_group.h - two PostgreSQL servers of one machine, of which one is the primary and the other its standby.
//
//  G1  The file FOLDER.roles names the primary. Its replacement is the one step that makes another server the primary.
//  G2  A server that the file does not name starts as a standby. The server that it names starts as the primary. If that
//      server was a standby until then, its start promotes it.
//  G3  All processes of a server hold the lock of its folder, which they inherit. Who has the lock knows that all of them
//      are dead, even if some were only stalled, and that none starts.
//  G4  A failover replaces the file while it has the lock of the primary. So there are never two primaries.
//  G5  A primary of two acknowledges a commit once both servers have it. The file says whether the standby also has what
//      was acknowledged before they were two. If it may not, it is promoted only while the primary says that it follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/internal/unique_fd.h"
#include "curtail/store/sql/postgresql_server.h"
#include "curtail/store/sql/session.h"

namespace curtail::internal {

struct PostgresqlRoles {
  enum class Standby : uint8_t {
    kStale,     // is made afresh
    kFollows,   // may lack what was acknowledged before it followed this primary
    kComplete,  // lacks nothing that was acknowledged
  };
  size_t primary = 0;
  Standby standby = Standby::kStale;
};

// Returns the folder of a server, 0 or 1.
std::string FolderOf(const PostgresqlGroup& group, size_t server);

// Nothing if there never were two servers. Errors: FAILED_PRECONDITION for a file that cannot be read.
absl::StatusOr<std::optional<PostgresqlRoles>> ReadRoles(const PostgresqlGroup& group);
// In one step, which survives a loss of power. Errors: FAILED_PRECONDITION.
absl::Status WriteRoles(const PostgresqlGroup& group, const PostgresqlRoles& roles);

enum class Holders : uint8_t { kLeave, kKill };
// Takes the lock of `path`, once the processes that hold it have ended; kKill ends them (SIGKILL). Errors: DEADLINE_EXCEEDED, FAILED_PRECONDITION.
absl::StatusOr<UniqueFd> TakeLock(const std::string& path, Deadline deadline,
                                  Holders holders = Holders::kLeave);
std::string LockOf(const PostgresqlGroup& group, size_t server);
// Has to be free for a server to start.
std::string StartLockOf(const PostgresqlGroup& group);
// Asks the server to end now, not when its clients have left. It may be gone, or not answer.
void AskToEnd(const PostgresqlGroup& group, size_t server);

// A connection to one server, whatever its role. Waits for `patience` if the server is away. Errors: those of
// PostgresqlSession.
absl::StatusOr<std::unique_ptr<SqlSession>> ConnectTo(const PostgresqlGroup& group, size_t server,
                                                      Nanos patience);
// The integer that a query without parameters returns. Errors: those of SqlSession.
absl::StatusOr<int64_t> Ask(SqlSession& session, std::string_view sql);
// 1 for a standby.
inline constexpr char kInRecovery[] = "SELECT pg_is_in_recovery()::int";
// As which a standby connects to its primary.
inline constexpr char kStandbyName[] = "curtail_standby";

}  // namespace curtail::internal
