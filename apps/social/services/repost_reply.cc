// SPDX-License-Identifier: Apache-2.0
//
// Repost and reply: which posts answer or repeat which. Deleted posts leave a row behind, as in favorite.
#include "apps/social/common/page.h"
#include "apps/social/data.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "reactions.curtail.h"

namespace curtail::social {

// Each post refers to one at most.
const char kReferenceSchema[] =
    "CREATE TABLE refs(post INTEGER PRIMARY KEY, author INTEGER NOT NULL, target INTEGER NOT NULL,"
    " repost INTEGER NOT NULL, bare INTEGER NOT NULL) STRICT;"
    "CREATE INDEX refs_of ON refs(target, repost, post);"
    "CREATE UNIQUE INDEX once ON refs(target, author) WHERE bare = 1;"
    "CREATE TABLE sizes(target INTEGER, repost INTEGER, size INTEGER NOT NULL, PRIMARY KEY(target, repost))"
    " STRICT, WITHOUT ROWID;"
    "CREATE TABLE forgotten(post INTEGER PRIMARY KEY) STRICT;";

struct RepostReplyService final : RepostReply::CoroutineService {
  explicit RepostReplyService(SqlDatabase& d) : db(d) {}

  Coroutine Add(Context& ctx, const Reference& request, Nothing*) override {
    const int repost = request.repost() ? 1 : 0, bare = request.bare() ? 1 : 0;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      bool gone = false;
      absl::Status status = s.Query("SELECT 1 FROM forgotten WHERE post = ?1", {request.of()},
                                    [&](const SqlRow&) { gone = true; });
      if (gone) return absl::NotFoundError("there is no such post");
      if (!status.ok()) return status;
      if (request.instead_of() != 0) {
        status = s.Execute(
            "UPDATE refs SET post = ?1 WHERE post = ?2 AND author = ?3 AND target = ?4 AND bare = 1",
            {request.post(), request.instead_of(), request.author(), request.of()});
        if (!status.ok() || s.changes() > 0) return status;
      }
      status = s.Execute("INSERT INTO refs(post, author, target, repost, bare) VALUES (?1, ?2, ?3, ?4, ?5)",
                         {request.post(), request.author(), request.of(), repost, bare});
      if (absl::IsAlreadyExists(status)) return absl::AlreadyExistsError("it was reposted before");
      if (!status.ok()) return status;
      return s.Execute(
          "INSERT INTO sizes VALUES (?1, ?2, 1) "
          "ON CONFLICT(target, repost) DO UPDATE SET size = sizes.size + 1",
          {request.of(), repost});
    });
  }

  Coroutine Find(Context& ctx, const Reference& request, Reference* reply) override {
    *reply = request;
    reply->set_post(0);
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT post FROM refs WHERE target = ?1 AND author = ?2 AND bare = 1",
                     {request.of(), request.author()},
                     [&](const SqlRow& row) { reply->set_post(row.Unsigned(0)); });
    });
  }

  Coroutine Remove(Context& ctx, const Reference& request, Nothing*) override {
    const int repost = request.repost() ? 1 : 0;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status =
          s.Execute("DELETE FROM refs WHERE post = ?1 AND author = ?2 AND target = ?3 AND repost = ?4",
                    {request.post(), request.author(), request.of(), repost});
      if (!status.ok() || s.changes() == 0) return status;
      return s.Execute("UPDATE sizes SET size = size - 1 WHERE target = ?1 AND repost = ?2",
                       {request.of(), repost});
    });
  }

  Coroutine Count(Context& ctx, const Ids& request, ReferenceCounts* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    reply->mutable_replies()->Resize(request.ids_size(), 0);
    reply->mutable_reposts()->Resize(request.ids_size(), 0);
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach("SELECT repost, size FROM sizes WHERE target = ?1", 1, apps::Each(request.ids()),
                         [&](size_t run, const SqlRow& row) {
                           auto* counts =
                               row.Integer(0) != 0 ? reply->mutable_reposts() : reply->mutable_replies();
                           counts->Set(static_cast<int>(run), row.Unsigned(1));
                         });
    });
  }

  Coroutine Replies(Context& ctx, const ReactionPage& request, Ids* reply) override {
    return List(ctx, request, 0, reply);
  }
  Coroutine Reposts(Context& ctx, const ReactionPage& request, Ids* reply) override {
    return List(ctx, request, 1, reply);
  }

  Coroutine Forget(Context& ctx, const Ids& request, Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const uint64_t post : request.ids()) status.Update(Forget(s, post));
      return status;
    });
  }

  static absl::Status Forget(SqlSession& s, uint64_t post) {
    absl::Status status = s.Execute("INSERT INTO forgotten(post) VALUES (?1) ON CONFLICT DO NOTHING", {post});
    status.Update(
        s.Execute("UPDATE sizes SET size = size - 1 WHERE (target, repost) ="
                  " (SELECT target, repost FROM refs WHERE post = ?1)",
                  {post}));
    status.Update(s.Execute("DELETE FROM refs WHERE post = ?1 OR target = ?1", {post}));
    status.Update(s.Execute("DELETE FROM sizes WHERE target = ?1", {post}));
    return status;
  }

  Coroutine List(Context& ctx, const ReactionPage& page, int repost, Ids* reply) {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT post FROM refs WHERE target = ?1 AND repost = ?2 AND post < ?3"
          " ORDER BY post DESC LIMIT ?4",
          {page.of(), repost, apps::BeforeOf(page.from()), uint64_t{apps::LimitOf(page.limit())}},
          [&](const SqlRow& row) { reply->add_ids(row.Unsigned(0)); });
    });
  }

  SqlDatabase& db;
};

HostedService HostedRepostReply() {
  return apps::HostedWithData<RepostReplyService>(kApplication, "repost-reply", {kReferenceSchema});
}

}  // namespace curtail::social
