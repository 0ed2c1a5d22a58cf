// SPDX-License-Identifier: Apache-2.0
//
// dashboard_command.h - `curtail dashboard`: shows an application whose processes others started, such as a cluster.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/observe/dashboard.h"
#include "curtail/term/console.h"
#include "tools/curtail/deploy/run_folder.h"

namespace curtail::tool {

struct DashboardFlags {
  std::string application;
  std::string listen = "127.0.0.1:9460";
  std::vector<std::string> services;  // "leaf=HOST:PORT,HOST:PORT": where the admin ports are
  std::vector<std::string> calls;     // "front-end=leaf,cart"
  std::string entry;                  // the service that clients call
};

// Watched is the services as a graph, and the names behind which their processes are. No locks: one thread.
struct Watched {
  struct Place {
    std::string service;
    std::string host;
    std::string port;
    std::optional<std::vector<std::string>> addresses = {};  // as last answered; none before the first answer
  };

  std::string application;
  std::vector<observe::DashboardService> services;  // in the order of the flags
  std::vector<Place> places;
};

// Errors: INVALID_ARGUMENT for flags of another form.
absl::StatusOr<Watched> WatchedBy(const DashboardFlags& flags);

// The processes that there are now: one for each address that a name has, and one in state "no pod" for a name that has
// none. Services without a place are "external". Looks names up one after the other, which blocks; once a name server does
// not answer, the names that are left are not looked up. The processes of a name without an answer are where the last
// answer had them.
UpState FindProcesses(Watched* watched);

// Serves until `stop`. Returns the exit code.
int RunDashboard(const DashboardFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
