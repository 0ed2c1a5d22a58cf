// SPDX-License-Identifier: Apache-2.0
//
// Block user: which users block which. A service that shows something of one user to another asks here, once for all
// authors.
#include "apps/kit/accounts/gone.h"
#include "apps/kit/once.h"
#include "apps/social/common/page.h"
#include "apps/social/data.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "users.curtail.h"

namespace curtail::social {

const char kBlockSchema[] =
    "CREATE TABLE blocks(user INTEGER, other INTEGER, PRIMARY KEY(user, other)) STRICT, WITHOUT ROWID;";
const char kBlockedIndex[] = "CREATE INDEX blocked ON blocks(other, user)";

struct BlockUserService final : BlockUser::CoroutineService {
  explicit BlockUserService(SqlDatabase& d) : db(d) {}

  Coroutine Add(Context& ctx, const Edge& request, Changed* reply) override {
    if (request.from() == request.to()) co_return absl::InvalidArgumentError("a user cannot block itself");
    co_return co_await apps::WriteOnce(db, ctx, request.from(), reply, [&](SqlSession& s) {
      absl::Status status =
          Change(s,
                 "INSERT INTO blocks SELECT ?1, ?2"
                 " WHERE NOT EXISTS (SELECT 1 FROM gone WHERE user IN (?1, ?2)) ON CONFLICT DO NOTHING",
                 request, reply);
      return status.ok() && !reply->changed() ? apps::CheckBothThere(s, request.from(), request.to())
                                              : status;
    });
  }
  Coroutine Remove(Context& ctx, const Edge& request, Changed* reply) override {
    co_return co_await apps::WriteOnce(db, ctx, request.from(), reply, [&](SqlSession& s) {
      return Change(s, "DELETE FROM blocks WHERE user = ?1 AND other = ?2", request, reply);
    });
  }

  static absl::Status Change(SqlSession& s, std::string_view sql, const Edge& edge, Changed* reply) {
    absl::Status status = s.Execute(sql, {edge.from(), edge.to()});
    reply->set_changed(status.ok() && s.changes() > 0);
    return status;
  }

  Coroutine List(Context& ctx, const EdgePage& request, Ids* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT other FROM blocks WHERE user = ?1 AND other > ?2 ORDER BY other LIMIT ?3",
                     {request.user(), request.after(), uint64_t{apps::EdgeLimitOf(request.limit())}},
                     [&](const SqlRow& row) { reply->add_ids(row.Unsigned(0)); });
    });
  }

  Coroutine Hidden(Context& ctx, const LookRequest& request, Ids* reply) override {
    if (absl::Status status = apps::CheckCount(request.authors_size(), apps::kMostIds, "authors");
        !status.ok()) {
      co_return status;
    }
    if (request.viewer() == 0 || request.authors().empty()) co_return absl::OkStatus();
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach(
          "SELECT 1 WHERE EXISTS (SELECT 1 FROM blocks WHERE user = ?1 AND other = ?2)"
          " OR EXISTS (SELECT 1 FROM blocks WHERE user = ?2 AND other = ?1)",
          2, apps::EachWith(request.viewer(), request.authors()),
          [&](size_t run, const SqlRow&) { reply->add_ids(request.authors(static_cast<int>(run))); });
    });
  }

  Coroutine ForgetUser(Context& ctx, const UserId& request, Nothing*) override {
    return apps::Forgetting(
        db, ctx.deadline(), request.user(), [user = request.user()](SqlSession& s, bool* more) {
          return apps::DeleteSome(s, user,
                                  {"DELETE FROM blocks WHERE user = ?1 AND other IN"
                                   " (SELECT other FROM blocks WHERE user = ?1 LIMIT ?2)",
                                   "DELETE FROM blocks WHERE other = ?1 AND user IN"
                                   " (SELECT user FROM blocks WHERE other = ?1 LIMIT ?2)"},
                                  more);
        });
  }

  SqlDatabase& db;
};

HostedService HostedBlockUser() {
  return apps::HostedWithData<BlockUserService>(
      kApplication, "block-user", {kBlockSchema, apps::kGoneSchema, kBlockedIndex, apps::kOnceSchema});
}

}  // namespace curtail::social
