// SPDX-License-Identifier: Apache-2.0
#include "apps/social/common/graph_store.h"

#include <utility>

#include "apps/kit/accounts/gone.h"
#include "apps/kit/data/folder.h"
#include "apps/social/data.h"

namespace curtail::social {

absl::StatusOr<std::unique_ptr<GraphStore>> OpenGraph(Env& env, const apps::DataOptions& data) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data.folder);
  if (!folder.ok()) return folder.status();
  const std::vector<std::string>& servers = apps::StoreOf(env, kGraphService, "redis");
  const std::string redis = servers.empty() ? "" : servers.front();
  if (absl::Status noted = apps::NotePlace(*folder, kGraphService, "redis", redis); !noted.ok()) return noted;
  if (!redis.empty()) {
    absl::StatusOr<StoreAddress> address = StoreAddress::Parse(redis);
    if (!address.ok()) return address.status();
    return MakeRedisGraph(*std::move(address));
  }
  auto db = apps::OpenData(env, data, kGraphService, {kGraphSchema, apps::kGoneSchema, apps::kOnceSchema});
  if (!db.ok()) return db.status();
  return MakeSqlGraph(*db);
}

absl::Status ForEachFollow(const std::string& folder, OnFollow follow) {
  const std::string redis = apps::PlaceNoted(folder, kGraphService, "redis");
  if (redis.empty()) return ForEachSqlFollow(folder, follow);
  const absl::StatusOr<StoreAddress> address = StoreAddress::Parse(redis);
  return address.ok() ? ForEachRedisFollow(*address, follow) : address.status();
}

}  // namespace curtail::social
