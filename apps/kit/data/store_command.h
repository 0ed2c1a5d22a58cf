// SPDX-License-Identifier: Apache-2.0
//
// store_command.h - commands of an application that start a server for its data, as its topology runs them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "curtail/rpc/host.h"

namespace curtail::apps {

// Makes the folder, if it is not there, and starts the server on it in this process's place, on a Unix socket. Returns only if
// that fails.
using BecomeStore = absl::Status (*)(const std::string& folder, const std::string& socket);

// `APPLICATION NAME --data FOLDER --socket PATH` starts `server` on FOLDER/NAME, and with `--of SERVICE` on FOLDER/SERVICE-NAME.
HostCommand StoreCommand(const std::string& application, const std::string& name, const std::string& server,
                         BecomeStore become);

// `APPLICATION postgresql`: a schema a service, instead of its file. With `--of SERVICE` it is the server of one service, on FOLDER/SERVICE-postgresql. `--replicas SOCKET,SOCKET`: one of a primary and its
// standby, which `--failover` exchanges. `--shard 1/2`: shard 1 of two, on a folder of its own; `--replicas` then has the sockets of shard 0
// first.
HostCommand PostgresqlCommand(const std::string& application);

}  // namespace curtail::apps
