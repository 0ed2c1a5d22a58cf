// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/data/data.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>

#include "apps/kit/data/folder.h"
#include "apps/kit/data/secrets.h"
#include "curtail/base/strings.h"

namespace curtail::apps {

void AddDataFlags(Flags& flags, DataOptions* options) {
  flags.Add(
      "--data", &options->folder,
      Join("Folder of the stores and the secret, auto: $XDG_STATE_HOME/curtail/", options->application));
  flags.Add("--secret", &options->secret,
            "File of the secret that signs tokens, for services that share no folder (default: in --data)");
  flags.Add("--no-sync", &options->no_sync, "What was acknowledged may be lost with the machine's power");
}

std::string IssuerOf(const DataOptions& options) { return Join("curtail-", options.application); }

absl::StatusOr<std::string> TokenSecret(const DataOptions& options) {
  if (!options.secret.empty()) return SecretOf(options.secret);
  const absl::StatusOr<std::string> folder = DataFolder(options.application, options.folder);
  return folder.ok() ? SecretOf(*folder + "/secret") : folder.status();
}

absl::Status NotePlace(const std::string& folder, std::string_view service, std::string_view kind,
                       const std::string& address) {
  const std::string path = Join(folder, "/", service, ".", kind);
  if (address.empty()) {
    std::error_code error;
    std::filesystem::remove(path, error);
    return absl::OkStatus();
  }
  std::ofstream note(path);
  note << address << '\n';
  return note.flush() ? absl::OkStatus() : absl::FailedPreconditionError(Join(path, " cannot be written"));
}

std::string PlaceNoted(const std::string& folder, std::string_view service, std::string_view kind) {
  std::string address;
  std::ifstream note(Join(folder, "/", service, ".", kind));
  std::getline(note, address);
  return address;
}

namespace {

SqlOptions PlaceOf(const std::string& folder, std::string_view service, const std::string& postgresql) {
  constexpr int kReaders = 4;  // a read in a server waits for it
  SqlOptions sql;
  sql.postgresql = postgresql;
  if (postgresql.empty()) {
    sql.path = Join(folder, "/", service, ".db");
  } else {
    sql.path = service;
    std::ranges::replace(sql.path, '-', '_');
    sql.readers = kReaders;
  }
  return sql;
}

}  // namespace

const std::vector<std::string>& StoreOf(const Env& env, std::string_view service, std::string_view kind) {
  const std::vector<std::string>& own = env.Store(Join(service, "-", kind));
  return own.empty() ? env.Store(kind) : own;
}

absl::StatusOr<std::unique_ptr<SqlDatabase>> OpenData(const DataOptions& options, std::string_view service,
                                                      std::vector<std::string> migrations,
                                                      const std::string& postgresql) {
  const absl::StatusOr<std::string> folder = DataFolder(options.application, options.folder);
  if (!folder.ok()) return folder.status();
  SqlOptions sql = PlaceOf(*folder, service, postgresql);
  sql.migrations = std::move(migrations);
  sql.sync = !options.no_sync;
  if (absl::Status noted = NotePlace(*folder, service, "postgresql", postgresql); !noted.ok()) return noted;
  return SqlDatabase::Open(std::move(sql));
}

absl::Status LookAtData(const std::string& folder, std::string_view service, SqlDatabase::Work work) {
  const std::string postgresql = PlaceNoted(folder, service, "postgresql");
  const SqlOptions sql = PlaceOf(folder, service, postgresql);
  std::error_code error;
  if (postgresql.empty() && !std::filesystem::exists(sql.path, error)) {
    return absl::NotFoundError(Join(sql.path, " is not there: --data names the folder of the services"));
  }
  return SqlDatabase::Look(sql, work);
}

namespace {

std::string ListOf(std::span<const std::string> servers) {
  std::string list;
  for (const std::string& server : servers) list += Join(list.empty() ? "" : ",", server);
  return list;
}

absl::StatusOr<SqlDatabase*> KeepWhileServing(Env& env, absl::StatusOr<std::unique_ptr<SqlDatabase>> opened) {
  if (!opened.ok()) return opened.status();
  SqlDatabase* const db = &env.Keep(*std::move(opened));
  env.WhileServing([] {}, [db] { db->Stop(); });
  return db;
}

}  // namespace

absl::StatusOr<SqlDatabase*> OpenData(Env& env, const DataOptions& options, std::string_view service,
                                      std::vector<std::string> migrations, std::string_view of) {
  const std::string servers = ListOf(StoreOf(env, of, "postgresql"));
  return KeepWhileServing(env, OpenData(options, service, std::move(migrations), servers));
}

absl::StatusOr<std::vector<SqlDatabase*>> OpenShards(Env& env, const DataOptions& options,
                                                     std::string_view service, std::string_view store,
                                                     uint32_t shards, std::vector<std::string> migrations) {
  const std::span<const std::string> servers = env.Store(store);
  std::vector<SqlDatabase*> all;
  if (!servers.empty() && servers.size() % shards != 0)
    return absl::InvalidArgumentError(
        Join("--store ", store, " has ", servers.size(), " addresses, of ", shards, " shards"));
  const size_t replicas = servers.size() / shards;
  for (uint32_t shard = 0; shard < (servers.empty() ? 1 : shards); ++shard) {
    absl::StatusOr<SqlDatabase*> db =
        servers.empty()
            ? OpenData(env, options, service, migrations)
            : KeepWhileServing(env, OpenData(options, service, migrations,
                                             ListOf(servers.subspan(shard * replicas, replicas))));
    if (!db.ok()) return db.status();
    all.push_back(*db);
  }
  return all;
}

HostedService HostedOnData(const std::string& application, std::string name,
                           std::function<MadeService(Env& env, const DataOptions& data)> make) {
  auto data = std::make_shared<DataOptions>();
  data->application = application;
  return {.name = std::move(name),
          .flags = [data](Flags& flags) { AddDataFlags(flags, data.get()); },
          .make = [data, make = std::move(make)](Env& env) { return make(env, *data); }};
}

}  // namespace curtail::apps
