// SPDX-License-Identifier: Apache-2.0
//
// postgresql_server.h - a PostgreSQL server of one's own on a Unix socket, with the programs that
// Debian installs; and a second one that has everything that the first one acknowledged.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"

namespace curtail {

// One server, or a primary and its standby.
struct PostgresqlGroup {
  // The data of the first server. The data of the second one is in FOLDER-1.
  std::string folder;
  // The Unix socket of each, a link into the folder `socket`.d.
  std::vector<std::string> sockets;
};

// Makes the server's folder if it is not there. Then starts the server in this process's place.
// Whoever reaches the folder of its socket is trusted, and the folder is this user's alone. A
// superuser's server runs as the user postgres, who need not reach the folders by their paths.
// Which of two servers is the primary is in FOLDER.roles; at first it is server 0. The primary
// acknowledges what both have. The other server waits for it, becomes a copy of it if it is not one
// already, and follows it. Returns only if that fails. Errors: FAILED_PRECONDITION with what to do,
// DEADLINE_EXCEEDED.
[[nodiscard]] absl::Status BecomePostgresql(const PostgresqlGroup& group, size_t server);
// The same for a single server.
[[nodiscard]] absl::Status BecomePostgresql(const std::string& folder, const std::string& socket);

// Ends the primary of two servers, makes the standby the primary, and returns when that takes
// writes: when the former primary, which its supervisor starts again, follows it. `say` hears of
// each step. One that was interrupted before the standby was promoted is finished by the next one.
// Errors: FAILED_PRECONDITION, after which nothing has changed: the standby may lack what was
// acknowledged, or does not serve; DEADLINE_EXCEEDED, which says what is done.
[[nodiscard]] absl::Status FailOverPostgresql(const PostgresqlGroup& group, Deadline deadline,
                                              const std::function<void(std::string_view)>& say);

}  // namespace curtail
