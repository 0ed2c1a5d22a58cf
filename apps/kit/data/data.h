// SPDX-License-Identifier: Apache-2.0
//
// data.h - where the services keep what they know: a file a service in one folder, or PostgreSQL.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/rpc/flags.h"
#include "curtail/rpc/host.h"
#include "curtail/store/sql/sql.h"

namespace curtail::apps {

struct DataOptions {
  std::string application;  // as for DataFolder()
  // As for DataFolder().
  std::string folder = "auto";
  std::string secret;  // the file of the secret that signs tokens; empty: in the folder
  bool no_sync = false;
};

void AddDataFlags(Flags& flags, DataOptions* options);

// Returns who signs the tokens of the application, as they name it.
std::string IssuerOf(const DataOptions& options);
// Returns the secret that signs tokens, from the file that `options` name. Errors: those of DataFolder() and SecretOf().
absl::StatusOr<std::string> TokenSecret(const DataOptions& options);

// Returns the addresses of the store SERVICE-KIND, which only this service has, such as user-postgresql; else of KIND, which all share.
// Empty: there is none.
const std::vector<std::string>& StoreOf(const Env& env, std::string_view service, std::string_view kind);

// FOLDER/SERVICE.db, or the schema of that name in the server `postgresql` (SqlOptions), with the newest schema.
absl::StatusOr<std::unique_ptr<SqlDatabase>> OpenData(const DataOptions& options, std::string_view service,
                                                      std::vector<std::string> migrations,
                                                      const std::string& postgresql = {});

// Looks once at what a service keeps, where it was opened last.
absl::Status LookAtData(const std::string& folder, std::string_view service, SqlDatabase::Work work);

// Notes in the folder that a service has its data elsewhere, in the server of this `kind` at `address`; nowhere if that is
// empty. Where that is, for programs that look at the data.
absl::Status NotePlace(const std::string& folder, std::string_view service, std::string_view kind,
                       const std::string& address);
std::string PlaceNoted(const std::string& folder, std::string_view service, std::string_view kind);

// For SqlSession::QueryEach(): a run an id; or a run `first` with an id.
template <class Ids>
std::vector<SqlValue> Each(const Ids& ids) {
  return {ids.begin(), ids.end()};
}
template <class Ids>
std::vector<SqlValue> EachWith(uint64_t first, const Ids& ids) {
  std::vector<SqlValue> values;
  for (const uint64_t id : ids) values.push_back(first), values.push_back(id);
  return values;
}

// For a service: in the store `postgresql` (StoreOf()) of `of`, if there is one, else in its file. `service` is the name of the
// file or schema, which of a shard is not its service's. The Env keeps it, and stops it when the process has drained.
absl::StatusOr<SqlDatabase*> OpenData(Env& env, const DataOptions& options, std::string_view service,
                                      std::vector<std::string> migrations, std::string_view of);
inline absl::StatusOr<SqlDatabase*> OpenData(Env& env, const DataOptions& options, std::string_view service,
                                             std::vector<std::string> migrations) {
  return OpenData(env, options, service, std::move(migrations), /*of=*/service);
}

// The data of a service in `shards` servers: a schema in each shard of the store `store`, of which the Env has the addresses of equally many
// replicas a shard, shard 0 first. Without that store it is what OpenData() opens, alone.
absl::StatusOr<std::vector<SqlDatabase*>> OpenShards(Env& env, const DataOptions& options,
                                                     std::string_view service, std::string_view store,
                                                     uint32_t shards, std::vector<std::string> migrations);

// A service with AddDataFlags(), made of what these give.
HostedService HostedOnData(const std::string& application, std::string name,
                           std::function<MadeService(Env& env, const DataOptions& data)> make);
// A service that keeps its data by `schema`, as OpenData() has it: made of its database, and of its Env, if it takes that.
template <class Made>
HostedService HostedWithData(const std::string& application, std::string name,
                             std::vector<std::string> schema) {
  return HostedOnData(application, name, [=](Env& env, const DataOptions& data) -> MadeService {
    const absl::StatusOr<SqlDatabase*> db = OpenData(env, data, name, schema);
    if (!db.ok()) return db.status();
    if constexpr (std::is_constructible_v<Made, SqlDatabase&, Env&>) {
      return std::make_unique<Made>(**db, env);
    } else {
      return std::make_unique<Made>(**db);
    }
  });
}

}  // namespace curtail::apps
