// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/data/store_command.h"

#include <memory>

#include "apps/kit/data/folder.h"
#include "curtail/base/strings.h"
#include "curtail/store/sql/postgresql_server.h"

namespace curtail::apps {

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

HostCommand PostgresqlCommand(const std::string& application) {
  return StoreCommand(application, "postgresql", "PostgreSQL server", BecomePostgresql);
}

}  // namespace curtail::apps
