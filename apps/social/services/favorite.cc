// SPDX-License-Identifier: Apache-2.0
//
// Favorite: who likes which post.
//
// A like may be on its way while its post is deleted. So a deleted post leaves a row behind, which refuses later likes:
// no order of the two leaves a like of nothing.
#include <map>

#include "apps/kit/accounts/gone.h"
#include "apps/kit/once.h"
#include "apps/social/common/page.h"
#include "apps/social/data.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "reactions.curtail.h"

namespace curtail::social {

const char kFavoriteSchema[] =
    "CREATE TABLE likes(post INTEGER, user INTEGER, author INTEGER NOT NULL, PRIMARY KEY(post, user))"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX likes_of ON likes(user, post);"
    "CREATE INDEX received ON likes(author);"
    "CREATE TABLE sizes(post INTEGER PRIMARY KEY, size INTEGER NOT NULL) STRICT;"
    "CREATE TABLE forgotten(post INTEGER PRIMARY KEY) STRICT;";
// Likes of the posts of an author, who is the same for all likes of a post.
const char kLikeCountersSchema[] =
    "CREATE TABLE counters(author INTEGER PRIMARY KEY, size INTEGER NOT NULL) STRICT;"
    "INSERT INTO counters(author, size) SELECT author, count(*) FROM likes GROUP BY author;"
    "DROP INDEX received";

struct FavoriteService final : Favorite::CoroutineService {
  explicit FavoriteService(SqlDatabase& d) : db(d) {}

  Coroutine Add(Context& ctx, const Liking& request, Changed* reply) override {
    co_return co_await apps::WriteOnce(db, ctx, request.user(), reply, [&](SqlSession& s) {
      absl::Status status = s.Execute(
          "INSERT INTO likes(post, user, author) SELECT ?1, ?2, ?3"
          " WHERE NOT EXISTS (SELECT 1 FROM forgotten WHERE post = ?1)"
          " AND NOT EXISTS (SELECT 1 FROM gone WHERE user = ?2) ON CONFLICT DO NOTHING",
          {request.post(), request.user(), request.author()});
      reply->set_changed(status.ok() && s.changes() > 0);
      if (!status.ok()) return status;
      if (reply->changed()) {
        status = s.Execute(
            "INSERT INTO sizes VALUES (?1, 1) "
            "ON CONFLICT(post) DO UPDATE SET size = sizes.size + 1",
            {request.post()});
        if (!status.ok()) return status;
        return s.Execute(
            "INSERT INTO counters VALUES (?1, 1) "
            "ON CONFLICT(author) DO UPDATE SET size = counters.size + 1",
            {request.author()});
      }
      bool forgotten = false;
      status = s.Query("SELECT 1 FROM forgotten WHERE post = ?1", {request.post()},
                       [&](const SqlRow&) { forgotten = true; });
      if (forgotten) return absl::NotFoundError("there is no such post");
      return status.ok() ? apps::CheckThere(s, request.user()) : status;
    });
  }

  Coroutine Remove(Context& ctx, const Liking& request, Changed* reply) override {
    co_return co_await apps::WriteOnce(db, ctx, request.user(), reply, [&](SqlSession& s) {
      uint64_t author = 0;
      reply->set_changed(false);
      absl::Status status = s.Query("DELETE FROM likes WHERE post = ?1 AND user = ?2 RETURNING author",
                                    {request.post(), request.user()}, [&](const SqlRow& row) {
                                      author = row.Unsigned(0);
                                      reply->set_changed(true);
                                    });
      if (!status.ok() || !reply->changed()) return status;
      status = s.Execute("UPDATE sizes SET size = size - 1 WHERE post = ?1", {request.post()});
      return status.ok() ? Uncount(s, author, 1) : status;
    });
  }

  Coroutine Count(Context& ctx, const Ids& request, Counts* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    reply->mutable_counts()->Resize(request.ids_size(), 0);
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach(
          "SELECT size FROM sizes WHERE post = ?1", 1, apps::Each(request.ids()),
          [&](size_t run, const SqlRow& row) { reply->set_counts(static_cast<int>(run), row.Unsigned(0)); });
    });
  }

  Coroutine By(Context& ctx, const ReactionPage& request, Ids* reply) override {
    return List(ctx, "SELECT user FROM likes WHERE post = ?1 AND user > ?2 ORDER BY user LIMIT ?3", request,
                request.from(), reply);
  }
  Coroutine Of(Context& ctx, const ReactionPage& request, Ids* reply) override {
    return List(ctx, "SELECT post FROM likes WHERE user = ?1 AND post < ?2 ORDER BY post DESC LIMIT ?3",
                request, apps::BeforeOf(request.from()), reply);
  }

  Coroutine Forget(Context& ctx, const Ids& request, Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const uint64_t post : request.ids()) {
        status.Update(s.Execute("INSERT INTO forgotten(post) VALUES (?1) ON CONFLICT DO NOTHING", {post}));
        uint64_t author = 0;
        status.Update(s.Query("SELECT author FROM likes WHERE post = ?1 LIMIT 1", {post},
                              [&](const SqlRow& row) { author = row.Unsigned(0); }));
        status.Update(s.Execute("DELETE FROM likes WHERE post = ?1", {post}));
        if (!status.ok()) return status;
        if (author != 0) status.Update(Uncount(s, author, s.changes()));
        status.Update(s.Execute("DELETE FROM sizes WHERE post = ?1", {post}));
      }
      return status;
    });
  }

  Coroutine Received(Context& ctx, const UserId& request, CountReply* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT size FROM counters WHERE author = ?1", {request.user()},
                     [&](const SqlRow& row) { reply->set_count(row.Unsigned(0)); });
    });
  }

  Coroutine ForgetUser(Context& ctx, const UserId& request, Nothing*) override {
    return apps::Forgetting(db, ctx.deadline(), request.user(),
                            [user = request.user()](SqlSession& s, bool* more) {
                              std::vector<SqlValue> posts;
                              std::map<uint64_t, int64_t> liked;
                              absl::Status status = s.Query(
                                  "DELETE FROM likes WHERE user = ?1 AND post IN"
                                  " (SELECT post FROM likes WHERE user = ?1 LIMIT ?2) RETURNING post, author",
                                  {user, apps::kMostForgotten}, [&](const SqlRow& row) {
                                    posts.push_back(row.Unsigned(0));
                                    ++liked[row.Unsigned(1)];
                                  });
                              *more = posts.size() == apps::kMostForgotten;
                              for (const auto& [author, likes] : liked)
                                status.Update(Uncount(s, author, likes));
                              if (!status.ok()) return status;
                              return s.QueryEach("UPDATE sizes SET size = size - 1 WHERE post = ?1", 1, posts,
                                                 [](size_t, const SqlRow&) {});
                            });
  }

  // Takes likes off what the author has received.
  static absl::Status Uncount(SqlSession& s, uint64_t author, int64_t likes) {
    absl::Status status =
        s.Execute("UPDATE counters SET size = size - ?2 WHERE author = ?1", {author, likes});
    return status.ok() ? s.Execute("DELETE FROM counters WHERE author = ?1 AND size = 0", {author}) : status;
  }

  Coroutine List(Context& ctx, std::string_view sql, const ReactionPage& page, uint64_t from, Ids* reply) {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(sql, {page.of(), from, uint64_t{apps::LimitOf(page.limit())}},
                     [&](const SqlRow& row) { reply->add_ids(row.Unsigned(0)); });
    });
  }

  SqlDatabase& db;
};

HostedService HostedFavorite() {
  return apps::HostedWithData<FavoriteService>(
      kApplication, "favorite", {kFavoriteSchema, apps::kGoneSchema, apps::kOnceSchema, kLikeCountersSchema});
}

}  // namespace curtail::social
