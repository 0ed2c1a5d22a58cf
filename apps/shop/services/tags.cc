// SPDX-License-Identifier: Apache-2.0
//
// Tags: which tags products have, and how many products have each.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "apps/kit/data/cache.h"
#include "apps/kit/page.h"
#include "apps/shop/data.h"
#include "goods.curtail.h"

namespace curtail::shop {

const char kTagsSchema[] =
    "CREATE TABLE tags(product INTEGER, tag TEXT, PRIMARY KEY(product, tag)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE counts(tag TEXT PRIMARY KEY, products INTEGER NOT NULL) STRICT, WITHOUT ROWID;";
constexpr int kMostTagsOfProduct = 16, kMostTagsListed = 1000;
constexpr size_t kMostTagBytes = 32;

absl::Status CheckTag(const std::string& tag) {
  const bool named = !tag.empty() && tag.size() <= kMostTagBytes && std::ranges::all_of(tag, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  return named ? absl::OkStatus() : absl::InvalidArgumentError("a tag is 1 to 32 of a-z, 0-9 and -");
}

struct TagsService final : Tags::CoroutineService {
  TagsService(SqlDatabase& d, std::unique_ptr<apps::Cache> c) : db(d), cache(std::move(c)) {}

  Coroutine All(Context& ctx, const apps::Nothing&, TagList* reply) override {
    co_return co_await apps::ReadRecent(ctx, cache.get(), "tags", reply, [&]() -> Coroutine {
      co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
        return s.Query("SELECT tag, products FROM counts ORDER BY tag LIMIT ?1", {kMostTagsListed},
                       [&](const SqlRow& row) {
                         Tag* const tag = reply->add_tags();
                         tag->set_name(std::string(row.Text(0)));
                         tag->set_products(row.Unsigned(1));
                       });
      });
    });
  }

  Coroutine Of(Context& ctx, const apps::Ids& request, TagsOfProducts* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    for (const uint64_t id : request.ids()) reply->add_products()->set_product(id);
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach("SELECT tag FROM tags WHERE product = ?1 ORDER BY tag", 1, apps::Each(request.ids()),
                         [&](size_t run, const SqlRow& row) {
                           reply->mutable_products(static_cast<int>(run))->add_tags(std::string(row.Text(0)));
                         });
    });
  }

  Coroutine Set(Context& ctx, const TagsOfProduct& request, apps::Nothing*) override {
    absl::Status status = apps::CheckCount(request.tags_size(), kMostTagsOfProduct, "tags");
    for (const std::string& tag : request.tags()) status.Update(CheckTag(tag));
    if (!status.ok()) co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) { return Replace(s, request); });
  }

  static absl::Status Replace(SqlSession& s, const TagsOfProduct& request) {
    std::set<std::string> before, after(request.tags().begin(), request.tags().end());
    absl::Status status = s.Query("SELECT tag FROM tags WHERE product = ?1", {request.product()},
                                  [&](const SqlRow& row) { before.emplace(row.Text(0)); });
    for (const std::string& tag : before) {
      if (!status.ok() || after.erase(tag) > 0) continue;  // the tag stays
      status = s.Execute("DELETE FROM tags WHERE product = ?1 AND tag = ?2", {request.product(), tag});
      if (status.ok()) status = s.Execute("UPDATE counts SET products = products - 1 WHERE tag = ?1", {tag});
    }
    for (const std::string& tag : after) {
      if (!status.ok()) break;
      status = s.Execute("INSERT INTO tags(product, tag) VALUES (?1, ?2)", {request.product(), tag});
      if (status.ok())
        status = s.Execute(
            "INSERT INTO counts(tag, products) VALUES (?1, 1)"
            " ON CONFLICT(tag) DO UPDATE SET products = counts.products + 1",
            {tag});
    }
    return status.ok() ? s.Execute("DELETE FROM counts WHERE products = 0", {}) : status;
  }

  std::vector<DeclaredPath> Paths() const override { return {{"All", {}}, {"Of", {}}, {"Set", {}}}; }

  SqlDatabase& db;
  const std::unique_ptr<apps::Cache> cache;  // may be null
};

HostedService HostedTags() {
  return apps::HostedOnData(kApplication, "tags", [](Env& env, const apps::DataOptions& data) -> MadeService {
    auto cache = apps::Cache::Of(env, "catalogue-cache");
    if (!cache.ok()) return cache.status();
    const auto db = apps::OpenData(env, data, "tags", {kTagsSchema}, /*of=*/"catalogue");
    if (!db.ok()) return db.status();
    return std::make_unique<TagsService>(**db, *std::move(cache));
  });
}

}  // namespace curtail::shop
