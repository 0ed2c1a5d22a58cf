// SPDX-License-Identifier: Apache-2.0
//
// Social graph: who follows whom, and who blocks whom.
#include "apps/social/data.h"
#include "apps/social/page.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "users.curtail.h"

namespace curtail::social {

// Keyed by who acts; the index has the other direction.
const char kGraphSchema[] =
    "CREATE TABLE follows(user INTEGER, other INTEGER, PRIMARY KEY(user, other)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX followers ON follows(other, user);"
    "CREATE TABLE blocks(user INTEGER, other INTEGER, PRIMARY KEY(user, other)) STRICT, WITHOUT ROWID;";

struct SocialGraphService final : SocialGraph::CoroutineService {
  explicit SocialGraphService(SqlDatabase& d) : db(d) {}

  Coroutine Follow(Context& ctx, const Edge& request, Changed* reply) override {
    if (request.from() == request.to()) co_return absl::InvalidArgumentError("nobody follows itself");
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      const absl::StatusOr<bool> blocked = Either(s, request.from(), request.to());
      if (!blocked.ok()) return blocked.status();
      if (*blocked) return absl::PermissionDeniedError("one of the two blocks the other");
      return Change(s, "INSERT INTO follows VALUES (?1, ?2) ON CONFLICT DO NOTHING", request, reply);
    });
  }

  Coroutine Unfollow(Context& ctx, const Edge& request, Changed* reply) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return Change(s, "DELETE FROM follows WHERE user = ?1 AND other = ?2", request, reply);
    });
  }

  Coroutine Block(Context& ctx, const Edge& request, Changed* reply) override {
    if (request.from() == request.to()) co_return absl::InvalidArgumentError("nobody blocks itself");
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status =
          s.Execute("DELETE FROM follows WHERE (user = ?1 AND other = ?2) OR (user = ?2 AND other = ?1)",
                    {request.from(), request.to()});
      if (!status.ok()) return status;
      return Change(s, "INSERT INTO blocks VALUES (?1, ?2) ON CONFLICT DO NOTHING", request, reply);
    });
  }

  Coroutine Unblock(Context& ctx, const Edge& request, Changed* reply) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return Change(s, "DELETE FROM blocks WHERE user = ?1 AND other = ?2", request, reply);
    });
  }

  Coroutine Followers(Context& ctx, const EdgePage& request, Ids* reply) override {
    return List(ctx, "SELECT user FROM follows WHERE other = ?1 AND user > ?2 ORDER BY user LIMIT ?3",
                request, reply);
  }
  Coroutine Followees(Context& ctx, const EdgePage& request, Ids* reply) override {
    return List(ctx, "SELECT other FROM follows WHERE user = ?1 AND other > ?2 ORDER BY other LIMIT ?3",
                request, reply);
  }

  Coroutine Look(Context& ctx, const LookRequest& request, LookReply* reply) override {
    if (absl::Status status = CheckCount(request.authors_size(), kMostIds, "authors"); !status.ok()) {
      co_return status;
    }
    if (request.viewer() == 0 || request.authors().empty()) co_return absl::OkStatus();
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      for (const uint64_t author : request.authors()) {
        const absl::StatusOr<bool> hidden = Either(s, request.viewer(), author);
        if (!hidden.ok()) return hidden.status();
        if (*hidden) reply->add_hidden(author);
        absl::Status status =
            s.Query("SELECT 1 FROM follows WHERE user = ?1 AND other = ?2", {request.viewer(), author},
                    [&](const SqlRow&) { reply->add_followed(author); });
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    });
  }

  Coroutine CountOf(Context& ctx, const UserId& request, GraphCounts* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT (SELECT count(*) FROM follows WHERE other = ?1),"
          " (SELECT count(*) FROM follows WHERE user = ?1)",
          {request.user()}, [&](const SqlRow& row) {
            reply->set_followers(row.Unsigned(0));
            reply->set_following(row.Unsigned(1));
          });
    });
  }

  // True if one of them blocks the other.
  static absl::StatusOr<bool> Either(SqlSession& s, uint64_t a, uint64_t b) {
    bool blocked = false;
    absl::Status status =
        s.Query("SELECT 1 FROM blocks WHERE (user = ?1 AND other = ?2) OR (user = ?2 AND other = ?1)", {a, b},
                [&](const SqlRow&) { blocked = true; });
    if (!status.ok()) return status;
    return blocked;
  }

  static absl::Status Change(SqlSession& s, std::string_view sql, const Edge& edge, Changed* reply) {
    absl::Status status = s.Execute(sql, {edge.from(), edge.to()});
    reply->set_changed(s.changes() > 0);
    return status;
  }

  Coroutine List(Context& ctx, std::string_view sql, const EdgePage& page, Ids* reply) {
    const uint32_t limit = page.limit() == 0 ? kMostIds : std::min<uint32_t>(page.limit(), kMostIds);
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(sql, {page.user(), page.after(), uint64_t{limit}},
                     [&](const SqlRow& row) { reply->add_ids(row.Unsigned(0)); });
    });
  }

  SqlDatabase& db;
};

HostedService HostedSocialGraph() {
  auto data = std::make_shared<DataOptions>();
  return {.name = "social-graph",
          .flags = [data](Flags& flags) { AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            auto db = OpenData(env, *data, "social-graph", {kGraphSchema});
            if (!db.ok()) return db.status();
            return std::make_unique<SocialGraphService>(**db);
          }};
}

}  // namespace curtail::social
