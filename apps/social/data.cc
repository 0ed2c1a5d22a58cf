// SPDX-License-Identifier: Apache-2.0
#include "apps/social/data.h"

#include <utility>

#include "apps/social/folder.h"
#include "apps/social/secrets.h"
#include "curtail/base/strings.h"

namespace curtail::social {

void AddDataFlags(Flags& flags, DataOptions* options) {
  flags.Add("--data", &options->folder,
            "Folder of the stores and the secret, auto: $XDG_STATE_HOME/curtail/social");
  flags.Add("--secret", &options->secret,
            "File of the secret that signs tokens, for services that share no folder (default: in --data)");
  flags.Add("--no-sync", &options->no_sync, "What was acknowledged may be lost with the machine's power");
}

absl::StatusOr<std::string> TokenSecret(const DataOptions& options) {
  if (!options.secret.empty()) return SecretOf(options.secret);
  const absl::StatusOr<std::string> folder = DataFolder(options.folder);
  return folder.ok() ? SecretOf(*folder + "/secret") : folder.status();
}

absl::StatusOr<std::unique_ptr<SqlDatabase>> OpenData(const DataOptions& options, std::string_view service,
                                                      std::vector<std::string> migrations) {
  const absl::StatusOr<std::string> folder = DataFolder(options.folder);
  if (!folder.ok()) return folder.status();
  SqlOptions sql;
  sql.path = Join(*folder, "/", service, ".db");
  sql.migrations = std::move(migrations);
  sql.sync = !options.no_sync;
  return SqlDatabase::Open(std::move(sql));
}

absl::StatusOr<SqlDatabase*> OpenData(Env& env, const DataOptions& options, std::string_view service,
                                      std::vector<std::string> migrations) {
  auto opened = OpenData(options, service, std::move(migrations));
  if (!opened.ok()) return opened.status();
  SqlDatabase* const db = &env.Keep(*std::move(opened));
  env.WhileServing([] {}, [db] { db->Stop(); });
  return db;
}

}  // namespace curtail::social
