// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/gone.h"
#include "apps/social/common/graph_store.h"
#include "apps/social/common/page.h"
#include "apps/social/data.h"

namespace curtail::social {

// Keyed by who acts; the index has the other direction.
const char kGraphSchema[] =
    "CREATE TABLE follows(user INTEGER, other INTEGER, PRIMARY KEY(user, other)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX followers ON follows(other, user);";

namespace {

class SqlGraph final : public GraphStore {
 public:
  explicit SqlGraph(SqlDatabase* db) : db_(*db) {}

  Coroutine Follow(Context& ctx, const Edge& edge, apps::Once& once, bool* changed) override {
    return Change(ctx, once, changed, [&edge](SqlSession& s, Changed* reply) {
      absl::Status status =
          Execute(s,
                  "INSERT INTO follows SELECT ?1, ?2"
                  " WHERE NOT EXISTS (SELECT 1 FROM gone WHERE user IN (?1, ?2)) ON CONFLICT DO NOTHING",
                  edge, reply);
      return status.ok() && !reply->changed() ? apps::CheckBothThere(s, edge.from(), edge.to()) : status;
    });
  }
  Coroutine Unfollow(Context& ctx, const Edge& edge, apps::Once& once, bool* changed) override {
    return Change(ctx, once, changed, [&edge](SqlSession& s, Changed* reply) {
      return Execute(s, "DELETE FROM follows WHERE user = ?1 AND other = ?2", edge, reply);
    });
  }

  Coroutine TakeBack(Context& ctx, const Edge& edge, const apps::Once& once) override {
    co_return co_await db_.Writing(ctx.deadline(), [&](SqlSession& s) {
      Changed reply;
      absl::Status status = Execute(s, "DELETE FROM follows WHERE user = ?1 AND other = ?2", edge, &reply);
      return status.ok() ? once.Forget(s) : status;
    });
  }

  Coroutine Part(Context& ctx, const Edge& edge, apps::Once& once) override {
    return Change(ctx, once, nullptr, [&edge](SqlSession& s, Changed* reply) {
      return Execute(s, "DELETE FROM follows WHERE (user = ?1 AND other = ?2) OR (user = ?2 AND other = ?1)",
                     edge, reply);
    });
  }

  Coroutine Forget(Context& ctx, uint64_t user) override {
    return apps::Forgetting(db_, ctx.deadline(), user, [user](SqlSession& s, bool* more) {
      return apps::DeleteSome(s, user,
                              {"DELETE FROM follows WHERE user = ?1 AND other IN"
                               " (SELECT other FROM follows WHERE user = ?1 LIMIT ?2)",
                               "DELETE FROM follows WHERE other = ?1 AND user IN"
                               " (SELECT user FROM follows WHERE other = ?1 LIMIT ?2)"},
                              more);
    });
  }

  Coroutine Followers(Context& ctx, const EdgePage& page, Ids* ids) override {
    return List(ctx, "SELECT user FROM follows WHERE other = ?1 AND user > ?2 ORDER BY user LIMIT ?3", page,
                ids);
  }
  Coroutine Followees(Context& ctx, const EdgePage& page, Ids* ids) override {
    return List(ctx, "SELECT other FROM follows WHERE user = ?1 AND other > ?2 ORDER BY other LIMIT ?3", page,
                ids);
  }

  Coroutine Followed(Context& ctx, const LookRequest& look, Ids* ids) override {
    co_return co_await db_.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach("SELECT 1 FROM follows WHERE user = ?1 AND other = ?2", 2,
                         apps::EachWith(look.viewer(), look.authors()), [&](size_t run, const SqlRow&) {
                           ids->add_ids(look.authors(static_cast<int>(run)));
                         });
    });
  }

  Coroutine Count(Context& ctx, uint64_t user, GraphCounts* counts) override {
    co_return co_await db_.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT (SELECT count(*) FROM follows WHERE other = ?1),"
          " (SELECT count(*) FROM follows WHERE user = ?1)",
          {user}, [&](const SqlRow& row) {
            counts->set_followers(row.Unsigned(0));
            counts->set_following(row.Unsigned(1));
          });
    });
  }

 private:
  template <class Work>
  Coroutine Change(Context& ctx, apps::Once& once, bool* changed, Work work) {
    Changed reply;
    absl::Status status = co_await db_.Writing(ctx.deadline(), [&](SqlSession& s) {
      return once.Write(s, &reply, [&] { return work(s, &reply); });
    });
    if (changed != nullptr) *changed = status.ok() && reply.changed();
    co_return status;
  }
  static absl::Status Execute(SqlSession& s, std::string_view sql, const Edge& edge, Changed* reply) {
    absl::Status status = s.Execute(sql, {edge.from(), edge.to()});
    reply->set_changed(status.ok() && s.changes() > 0);
    return status;
  }

  Coroutine List(Context& ctx, std::string_view sql, const EdgePage& page, Ids* ids) {
    co_return co_await db_.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(sql, {page.user(), page.after(), uint64_t{apps::EdgeLimitOf(page.limit())}},
                     [&](const SqlRow& row) { ids->add_ids(row.Unsigned(0)); });
    });
  }

  SqlDatabase& db_;
};

}  // namespace

std::unique_ptr<GraphStore> MakeSqlGraph(SqlDatabase* db) { return std::make_unique<SqlGraph>(db); }

absl::Status ForEachSqlFollow(const std::string& folder, OnFollow follow) {
  return apps::LookAtData(folder, kGraphService, [&](SqlSession& session) {
    return session.Query("SELECT user, other FROM follows", {},
                         [&](const SqlRow& row) { follow(row.Unsigned(0), row.Unsigned(1)); });
  });
}

}  // namespace curtail::social
