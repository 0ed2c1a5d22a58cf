// SPDX-License-Identifier: Apache-2.0
//
// Wishlist: products that users wish for, and the names by which they show their lists to others. Others see a list as it was a second
// ago at most.
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "apps/kit/accounts/gone.h"
#include "apps/kit/data/cache.h"
#include "apps/kit/data/secrets.h"
#include "apps/kit/wall_clock.h"
#include "apps/shop/data.h"
#include "customers.curtail.h"
#include "goods.curtail.h"

namespace curtail::shop {

const char kWishesSchema[] =
    "CREATE TABLE wishes(owner INTEGER, product INTEGER, since_ms INTEGER NOT NULL,"
    " PRIMARY KEY(owner, product)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE shares(owner INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;";
constexpr int64_t kMostWishes = 100;
constexpr size_t kShareBytes = 16;  // that are drawn
constexpr size_t kMostShareName = 64;

struct WishlistService final : Wishlists::CoroutineService {
  WishlistService(SqlDatabase& d, std::unique_ptr<apps::Cache> c, Env& env)
      : db(d), cache(std::move(c)), catalogue(env.Stub<Catalogue>("catalogue")) {}

  Coroutine List(Context& ctx, const apps::UserId& request, Wishlist* reply) override {
    co_return co_await db.Reading(ctx.deadline(),
                                  [&](SqlSession& s) { return Read(s, request.user(), reply); });
  }
  static absl::Status Read(SqlSession& s, uint64_t owner, Wishlist* reply) {
    reply->Clear();
    absl::Status status =
        s.Query("SELECT product, since_ms FROM wishes WHERE owner = ?1 ORDER BY since_ms DESC, product DESC",
                {owner}, [&](const SqlRow& row) {
                  Wish* const wish = reply->add_wishes();
                  wish->set_product(row.Unsigned(0));
                  wish->set_since_ms(row.Integer(1));
                });
    if (!status.ok()) return status;
    return s.Query("SELECT name FROM shares WHERE owner = ?1", {owner},
                   [&](const SqlRow& row) { reply->set_share(std::string(row.Text(0))); });
  }

  Coroutine Add(Context& ctx, const WishOrder& request, Wishlist* reply) override {
    auto [known] = co_await WhenAll(ctx, Ask(catalogue, Catalogue::kGet, apps::IdsOf(request.product())));
    if (!known.ok()) co_return known.status();
    if (known->products().empty())
      co_return absl::NotFoundError(Join("there is no product ", request.product()));
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = apps::CheckThere(s, request.owner());
      if (status.ok())
        status = s.Execute(
            "INSERT INTO wishes(owner, product, since_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            {request.owner(), request.product(), apps::NowMs()});
      if (status.ok()) status = Read(s, request.owner(), reply);
      if (status.ok() && reply->wishes_size() > kMostWishes)
        status = absl::ResourceExhaustedError(Join("a wishlist has at most ", kMostWishes, " products"));
      return status;
    });
  }

  Coroutine Remove(Context& ctx, const WishOrder& request, Wishlist* reply) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = s.Execute("DELETE FROM wishes WHERE owner = ?1 AND product = ?2",
                                      {request.owner(), request.product()});
      return status.ok() ? Read(s, request.owner(), reply) : status;
    });
  }

  Coroutine Share(Context& ctx, const apps::UserId& request, Wishlist* reply) override {
    const absl::StatusOr<std::string> drawn = apps::RandomBytes(kShareBytes);
    if (!drawn.ok()) co_return drawn.status();
    std::string name;
    absl::WebSafeBase64Escape(*drawn, &name);
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = apps::CheckThere(s, request.user());
      if (status.ok())
        status = s.Execute("INSERT INTO shares(owner, name) VALUES (?1, ?2) ON CONFLICT(owner) DO NOTHING",
                           {request.user(), name});
      return status.ok() ? Read(s, request.user(), reply) : status;
    });
  }

  Coroutine Shared(Context& ctx, const SharedQuery& request, Wishlist* reply) override {
    const absl::Status unknown = absl::NotFoundError("there is no such wishlist");
    if (request.share().size() > kMostShareName) co_return unknown;
    std::string key;
    absl::WebSafeBase64Escape(request.share(), &key);  // as a cache takes keys
    co_return co_await apps::ReadRecent(ctx, cache.get(), "share." + key, reply, [&]() -> Coroutine {
      co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
        uint64_t owner = 0;
        absl::Status status = s.Query("SELECT owner FROM shares WHERE name = ?1", {request.share()},
                                      [&](const SqlRow& row) { owner = row.Unsigned(0); });
        if (status.ok() && owner == 0) status = unknown;
        return status.ok() ? Read(s, owner, reply) : status;
      });
    });
  }

  Coroutine Forget(Context& ctx, const apps::UserId& request, apps::Nothing*) override {
    co_return co_await apps::Forgetting(db, ctx.deadline(), request.user(), [&](SqlSession& s, bool*) {
      absl::Status status = s.Execute("DELETE FROM wishes WHERE owner = ?1", {request.user()});
      return status.ok() ? s.Execute("DELETE FROM shares WHERE owner = ?1", {request.user()}) : status;
    });
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"List", {}},  {"Add", {catalogue}}, {"Remove", {}},
            {"Share", {}}, {"Shared", {}},       {"Forget", {}}};
  }

  SqlDatabase& db;
  const std::unique_ptr<apps::Cache> cache;  // may be null
  const Catalogue::Stub catalogue;
};

HostedService HostedWishlist() {
  return apps::HostedOnData(
      kApplication, "wishlist", [](Env& env, const apps::DataOptions& data) -> MadeService {
        auto cache = apps::Cache::Of(env, "wishlist-cache");
        if (!cache.ok()) return cache.status();
        const auto db =
            apps::OpenData(env, data, "wishlist", {kWishesSchema, apps::kGoneSchema, apps::kOnceSchema});
        if (!db.ok()) return db.status();
        return std::make_unique<WishlistService>(**db, *std::move(cache), env);
      });
}

}  // namespace curtail::shop
