// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/data/store_command.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>
#include <vector>

#include "apps/kit/data/folder.h"
#include "curtail/base/clock.h"
#include "curtail/base/shard.h"
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

// Returns the sockets of one shard.
std::vector<std::string> OfShard(const Shard& shard, const std::vector<std::string>& sockets) {
  if (sockets.size() < shard.count) return sockets;  // its own
  const auto at = [&](uint64_t end) { return sockets.begin() + static_cast<ptrdiff_t>(end); };
  return {at(shard.Begin(sockets.size())), at(shard.End(sockets.size()))};
}

// Where the server is, of all services or of one.
struct Place {
  std::string data, service, socket;
};

void AddPlaceFlags(Flags& flags, Place* place) {
  flags.Add("--data", &place->data, "Folder of the stores");
  flags.Add("--of", &place->service, "The service whose data it has, with a folder of its own [all]");
  flags.Add("--socket", &place->socket, "The Unix socket on which it listens");
}

absl::StatusOr<std::string> FolderOf(const std::string& application, const std::string& name,
                                     const Place& place) {
  absl::StatusOr<std::string> folder = DataFolder(application, place.data);
  if (folder.ok()) *folder += Join("/", place.service, place.service.empty() ? "" : "-", name);
  return folder;
}

}  // namespace

HostCommand StoreCommand(const std::string& application, const std::string& name, const std::string& server,
                         BecomeStore become) {
  auto place = std::make_shared<Place>();
  return {.name = name,
          .help = Join("Run a ", server, " that keeps its data in the folder of the stores"),
          .examples = Join("Examples:\n  ", application, " ", name, " --socket /tmp/", name),
          .flags = [place](Flags& flags) { AddPlaceFlags(flags, place.get()); },
          .run = [=]() -> absl::Status {
            if (place->socket.empty()) return absl::InvalidArgumentError("--socket is required");
            const absl::StatusOr<std::string> folder = FolderOf(application, name, *place);
            return folder.ok() ? become(*folder, place->socket) : folder.status();
          }};
}

HostCommand PostgresqlCommand(const std::string& application) {
  struct Options : Place {
    std::string replicas, shard = "0/1";
    bool failover = false;
  };
  auto options = std::make_shared<Options>();
  return {
      .name = "postgresql",
      .help =
          "Run a PostgreSQL server, or a primary and its standby, that keep their data in the folder of "
          "the stores",
      .examples = Join("Examples:\n  ", application, " postgresql --socket /tmp/sql\n  ", application,
                       " postgresql --socket /tmp/b --replicas /tmp/a,/tmp/b\n  ", application,
                       " postgresql --failover --replicas /tmp/a,/tmp/b"),
      .flags =
          [options](Flags& flags) {
            AddPlaceFlags(flags, options.get());
            flags.Add("--replicas", &options->replicas,
                      "The sockets of both replicas, if there are two; its own is one of them");
            flags.Add("--shard", &options->shard, "INDEX/COUNT: which of several servers of equal replicas");
            flags.Add(
                "--failover", &options->failover,
                "End the primary, and make the standby the primary. Both replicas must be looked after");
          },
      .run = [=]() -> absl::Status {
        const absl::StatusOr<Shard> shard = Shard::Parse(options->shard);
        if (!shard.ok()) return shard.status();
        absl::StatusOr<std::string> folder = FolderOf(application, "postgresql", *options);
        if (!folder.ok()) return folder.status();
        if (shard->count > 1) *folder += Join("-shard", shard->index);
        PostgresqlGroup group{
            .folder = *folder,
            .sockets =
                OfShard(*shard, SocketsOf(options->replicas.empty() ? options->socket : options->replicas))};
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
