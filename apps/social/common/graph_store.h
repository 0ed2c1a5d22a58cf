// SPDX-License-Identifier: Apache-2.0
//
// graph_store.h - where it is kept who follows whom.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/kit/data/data.h"
#include "apps/kit/once.h"
#include "apps/social/data.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "curtail/store/address.h"
#include "curtail/store/sql/sql.h"
#include "users.pb.h"

namespace curtail::social {

// A GraphStore keeps a follow in both directions, or in none. Thread-safe. Calls end at the deadline of their context; a
// change that fails may have happened, and may be repeated.
class GraphStore {
 public:
  virtual ~GraphStore() = default;

  // edge.from() follows edge.to(), or no longer does. Errors of Follow if the one or the other was forgotten:
  // GoneError() and OtherGoneError() (gone.h). All writes of `once` have its errors.
  virtual Coroutine Follow(Context& ctx, const Edge& edge, apps::Once& once, bool* changed) = 0;
  virtual Coroutine Unfollow(Context& ctx, const Edge& edge, apps::Once& once, bool* changed) = 0;
  // As if that Follow() had not been.
  virtual Coroutine TakeBack(Context& ctx, const Edge& edge, const apps::Once& once) = 0;
  // Neither of the two follows the other.
  virtual Coroutine Part(Context& ctx, const Edge& edge, apps::Once& once) = 0;
  // The user was deleted: it follows no user and none follows it, from now on.
  virtual Coroutine Forget(Context& ctx, uint64_t user) = 0;
  // Appends a page.
  virtual Coroutine Followers(Context& ctx, const EdgePage& page, Ids* ids) = 0;
  virtual Coroutine Followees(Context& ctx, const EdgePage& page, Ids* ids) = 0;
  // Appends those of the authors whom the viewer follows.
  virtual Coroutine Followed(Context& ctx, const LookRequest& look, Ids* ids) = 0;
  virtual Coroutine Count(Context& ctx, uint64_t user, GraphCounts* counts) = 0;
};

// In an SQLite file that has kGraphSchema, kGoneSchema and kOnceSchema, and outlives the store.
extern const char kGraphSchema[];
std::unique_ptr<GraphStore> MakeSqlGraph(SqlDatabase* db);

// In a Redis. What it acknowledged is as safe as that Redis is set to keep it.
std::unique_ptr<GraphStore> MakeRedisGraph(StoreAddress address);

inline constexpr char kGraphService[] = "social-graph";
// For the service: in the Redis `redis`, if there is one, else in its file, or in the server `postgresql`.
absl::StatusOr<std::unique_ptr<GraphStore>> OpenGraph(Env& env, const apps::DataOptions& data);

// Calls `follow` for each follow, where the service of that folder keeps them; for threads that may block. Errors: those
// of the store, NOT_FOUND.
using OnFollow = absl::FunctionRef<void(uint64_t user, uint64_t other)>;
absl::Status ForEachFollow(const std::string& folder, OnFollow follow);
absl::Status ForEachSqlFollow(const std::string& folder, OnFollow follow);
absl::Status ForEachRedisFollow(const StoreAddress& address, OnFollow follow);

}  // namespace curtail::social
