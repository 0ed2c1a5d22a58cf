// SPDX-License-Identifier: Apache-2.0
//
// target.h - the processes of applications that are up, by the names that a user gives: APP, APP/SERVICE,
// APP/SERVICE.INSTANCE.
//
// INSTANCE is a shard, or SHARD.REPLICA, or of a service without shards a replica; "router/leaf.1" is both replicas of shard 1, and "router/leaf-1.0" is one
// process, by its name in `curtail ps`. Reads the run folders; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/curtail/deploy/run_folder.h"

namespace curtail::tool {

// The help of a command that takes admin targets.
inline constexpr char kAdminTargetHelp[] =
    "APP, APP/SERVICE or APP/SERVICE.INSTANCE of what is up, or an admin address (the server's --admin)";

// True if `text` is HOST:PORT or unix:PATH, and no name.
bool IsAddress(std::string_view text);

// True if `asked`, "leaf", "leaf.0" or "leaf-0", names the process `name`. A process of a group, "text+count", has the
// names of its services, too.
bool NamesProcess(std::string_view asked, std::string_view name);

// "supplier-0.1" for "supplier.1" if the processes of that service, among all `names`, show that it has replicas and no
// shards; else `asked`.
std::string InstanceMeant(std::string_view asked, const std::vector<std::string>& names);

// The processes that `target` names, at least one: of APP alone those of the service that clients call. Errors:
// NOT_FOUND, which says what there is.
absl::StatusOr<std::vector<ProcessState>> FindProcesses(std::string_view target);

// `targets` with the addresses of the processes in place of names. Errors: as above.
absl::StatusOr<std::vector<std::string>> ToAddresses(const std::vector<std::string>& targets);

// An admin interface and the name of its process; no name where an address was given.
struct AdminTarget {
  std::string name;
  std::string address;
};
// Those of a target, which may be an address. Errors: as above; FAILED_PRECONDITION for a process without one.
absl::StatusOr<std::vector<AdminTarget>> ToAdmins(const std::string& target);

}  // namespace curtail::tool
