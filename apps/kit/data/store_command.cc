// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/data/store_command.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>
#include <vector>

#include "apps/kit/data/folder.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "curtail/store/sql/postgresql_server.h"

namespace curtail::apps {
namespace {

constexpr Nanos kFailoverPatience = std::chrono::seconds(100);

// "/tmp/a,unix:/tmp/b": a topology's addresses have the prefix.
std::vector<std::string> SocketsOf(const std::string& list) {
  std::vector<std::string> sockets;
  std::istringstream parts(list);
  for (std::string socket; std::getline(parts, socket, ',');)
    sockets.push_back(socket.starts_with("unix:") ? socket.substr(5) : socket);
  return sockets;
}

}  // namespace

HostCommand StoreCommand(const std::string& application, const std::string& name, const std::string& server,
                         BecomeStore become) {
  struct Options {
    std::string data, socket;
  };
  auto options = std::make_shared<Options>();
  return {.name = name,
          .help = Join("Run a ", server, " that keeps its data in the folder of the stores"),
          .examples = Join("Examples:\n  ", application, " ", name, " --socket /tmp/", name),
          .flags =
              [options](Flags& flags) {
                flags.Add("--data", &options->data, "Folder of the stores");
                flags.Add("--socket", &options->socket, "The Unix socket on which it listens").Required();
              },
          .run =
              [=] {
                const absl::StatusOr<std::string> folder = DataFolder(application, options->data);
                return folder.ok() ? become(Join(*folder, "/", name), options->socket) : folder.status();
              }};
}

HostCommand PostgresqlCommand(const std::string& application, const std::string& name) {
  struct Options {
    std::string data, socket, replicas;
    bool failover = false;
  };
  auto options = std::make_shared<Options>();
  return {.name = name,
          .help =
              "Run a PostgreSQL server, or a primary and its standby, that keep their data in the folder of "
              "the stores",
          .examples = Join("Examples:\n  ", application, " ", name, " --socket /tmp/sql\n  ", application,
                           " ", name, " --socket /tmp/b --replicas /tmp/a,/tmp/b\n  ", application, " ", name,
                           " --failover --replicas /tmp/a,/tmp/b"),
          .flags =
              [options](Flags& flags) {
                flags.Add("--data", &options->data, "Folder of the stores");
                flags.Add("--socket", &options->socket, "The Unix socket on which it listens");
                flags.Add("--replicas", &options->replicas,
                          "The sockets of both replicas, if there are two; its own is one of them");
                flags.Add(
                    "--failover", &options->failover,
                    "End the primary, and make the standby the primary. Both replicas must be looked after");
              },
          .run = [=]() -> absl::Status {
            const absl::StatusOr<std::string> folder = DataFolder(application, options->data);
            if (!folder.ok()) return folder.status();
            PostgresqlGroup group{
                .folder = Join(*folder, "/", name),
                .sockets = SocketsOf(options->replicas.empty() ? options->socket : options->replicas)};
            if (options->failover) {
              return FailOverPostgresql(group, Deadline::In(kFailoverPatience),
                                        [](std::string_view step) { std::cout << step << std::endl; });
            }
            const auto own = std::ranges::find(group.sockets, options->socket);
            if (own == group.sockets.end())
              return absl::InvalidArgumentError(
                  "--socket and --replicas: give this server's socket, and one that is among --replicas");
            return BecomePostgresql(group, static_cast<size_t>(own - group.sockets.begin()));
          }};
}

}  // namespace curtail::apps
