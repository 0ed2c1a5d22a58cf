// SPDX-License-Identifier: Apache-2.0
//
// postgresql_server.h - a PostgreSQL server of one's own on a Unix socket, with the programs that Debian installs.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace curtail {

// Makes the folder, which holds the data, if it is not there. Then starts the server in this process's place, on the
// Unix socket `socket`, a link into the folder `socket`.d. Whoever reaches that folder is trusted, and the folder is
// this user's alone. A superuser's server runs as the user postgres, who need not reach the folders by their paths.
// Returns only if that fails. Errors: FAILED_PRECONDITION with what to do.
[[nodiscard]] absl::Status BecomePostgresql(const std::string& folder, const std::string& socket);

}  // namespace curtail
