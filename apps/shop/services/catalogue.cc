// SPDX-License-Identifier: Apache-2.0
//
// Catalogue: names, prices and tags of products. Each change gives all products a version, which is part of the names of entries in the
// memcached. So no reader finds an old price there.
#include <algorithm>
#include <atomic>
#include <set>

#include "apps/kit/data/cache.h"
#include "apps/kit/page.h"
#include "apps/shop/data.h"
#include "goods.curtail.h"

namespace curtail::shop {

constexpr int kMostTags = 16;
constexpr uint32_t kMostPage = 10'000;

// Products that have the ?17 different tags among the first sixteen values; all products, if that is 0.
constexpr char kTagged[] =
    " FROM products WHERE (?17 = 0 OR id IN (SELECT product FROM tagged WHERE tag IN"
    " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
    " GROUP BY product HAVING count(*) = ?17))";

std::string ListOf(std::string_view order) {
  return Join("SELECT id, bytes", kTagged, " ORDER BY ", order, " LIMIT ?18 OFFSET ?19");
}
// By ProductQuery::Order.
const std::string& StatementOf(ProductQuery::Order order) {
  static const std::string by_order[] = {ListOf("id"), ListOf("id DESC"), ListOf("cents, id"),
                                         ListOf("cents DESC, id DESC")};
  return by_order[order];
}

absl::Status CheckTags(const google::protobuf::RepeatedPtrField<std::string>& tags) {
  std::set<std::string_view> all;
  for (const std::string& tag : tags) {
    const bool right = !tag.empty() && tag.size() <= 32 && std::ranges::all_of(tag, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
    if (!right || !all.insert(tag).second)
      return absl::InvalidArgumentError("a tag is 1 to 32 of a-z, 0-9 and -, and no two are the same");
  }
  return apps::CheckCount(tags.size(), kMostTags, "tags");
}

absl::Status CheckProduct(const Product& product) {
  if (product.name().empty() || product.name().size() > 100)
    return absl::InvalidArgumentError("the name of a product has 1 to 100 bytes");
  if (product.description().size() > 2000)
    return absl::InvalidArgumentError("the description of a product has at most 2,000 bytes");
  if (product.cents() < 1 || product.cents() > 100'000'000)
    return absl::InvalidArgumentError("a product costs 1 to 100,000,000 cents");
  if (product.grams() > 100'000) return absl::InvalidArgumentError("a product weighs at most 100 kg");
  return CheckTags(product.tags());
}

struct CatalogueService final : Catalogue::CoroutineService {
  CatalogueService(SqlDatabase& d, std::unique_ptr<apps::Cache> c, uint64_t version)
      : db(d), cache(std::move(c)), newest(version) {}

  // The values for kTagged.
  static absl::Status Values(const ProductQuery& query, std::vector<SqlValue>* values) {
    if (absl::Status status = CheckTags(query.tags()); !status.ok()) return status;
    for (const std::string& tag : query.tags()) values->emplace_back(tag);
    while (values->size() < kMostTags) values->emplace_back("");
    values->emplace_back(query.tags_size());
    return absl::OkStatus();
  }

  Coroutine List(Context& ctx, const ProductQuery& request, ProductList* reply) override {
    std::vector<SqlValue> values;
    absl::Status status = Values(request, &values);
    if (status.ok() && request.page() > kMostPage)
      status = absl::InvalidArgumentError(Join("pages are numbered 0 to ", kMostPage));
    if (status.ok() && !ProductQuery::Order_IsValid(request.order()))
      status = absl::InvalidArgumentError("there is no such order");
    if (!status.ok()) co_return status;
    const uint64_t limit = apps::LimitOf(request.limit());
    values.emplace_back(limit + 1);
    values.emplace_back(request.page() * limit);
    status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach(StatementOf(request.order()), values.size(), values, [&](size_t, const SqlRow& row) {
        if (static_cast<uint64_t>(reply->products_size()) == limit) reply->set_next(request.page() + 1);
        else Put(row.Unsigned(0), row.Text(1), reply);
      });
    });
    if (reply->next() > kMostPage) reply->clear_next();
    co_return status;
  }

  Coroutine Count(Context& ctx, const ProductQuery& request, ProductCount* reply) override {
    std::vector<SqlValue> values;
    if (absl::Status status = Values(request, &values); !status.ok()) co_return status;
    static const std::string count = Join("SELECT count(*)", kTagged);
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach(count, values.size(), values,
                         [&](size_t, const SqlRow& row) { reply->set_count(row.Unsigned(0)); });
    });
  }

  Coroutine Get(Context& ctx, const apps::Ids& request, ProductList* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "products"); !status.ok())
      co_return status;
    const std::string prefix = Join(newest.load(std::memory_order_acquire), ".");
    co_return co_await apps::ReadRows(ctx, cache.get(), db, prefix,
                                      {request.ids().begin(), request.ids().end()},
                                      "SELECT bytes FROM products WHERE id = ?1",
                                      [&](uint64_t id, std::string_view bytes) { Put(id, bytes, reply); });
  }

  static void Put(uint64_t id, std::string_view bytes, ProductList* reply) {
    Product& product = *reply->add_products();
    product.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    product.set_id(id);
  }

  Coroutine Put(Context& ctx, const Product& request, Product* reply) override {
    if (absl::Status status = CheckProduct(request); !status.ok()) co_return status;
    uint64_t version = 0;
    absl::Status status = co_await apps::WriteOnce(db, ctx, /*caller=*/0, reply, [&](SqlSession& s) {
      uint64_t last = 0, known = 0;
      absl::Status read = s.Query(
          "SELECT (SELECT coalesce(max(id), 0) FROM products), (SELECT coalesce(max(version), 0) FROM "
          "products),"
          " (SELECT count(*) FROM products WHERE id = ?1)",
          {request.id()}, [&](const SqlRow& row) {
            last = row.Unsigned(0);
            version = row.Unsigned(1) + 1;
            known = row.Unsigned(2);
          });
      if (read.ok() && request.id() != 0 && known == 0)
        read = absl::NotFoundError("there is no such product");
      *reply = request;
      reply->set_id(request.id() == 0 ? last + 1 : request.id());
      return read.ok() ? Write(s, *reply, version) : read;
    });
    // A repetition may be of a change whose answer was lost, so that nobody has stored its version yet.
    if (status.ok() && version == 0)
      status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) { return FindNewest(s, &version); });
    uint64_t known = newest.load(std::memory_order_relaxed);
    while (
        status.ok() && known < version &&
        !newest.compare_exchange_weak(known, version, std::memory_order_release, std::memory_order_relaxed)) {
    }
    co_return status;
  }

  static absl::Status FindNewest(SqlSession& s, uint64_t* version) {
    return s.Query("SELECT coalesce(max(version), 0) FROM products", {},
                   [&](const SqlRow& row) { *version = row.Unsigned(0); });
  }

  static absl::Status Write(SqlSession& s, const Product& product, uint64_t version) {
    Product kept = product;
    kept.clear_id();
    const std::string bytes = kept.SerializeAsString();
    absl::Status status = s.Execute(
        "INSERT INTO products(id, cents, version, bytes) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT(id) DO UPDATE SET cents = ?2, version = ?3, bytes = ?4",
        {product.id(), product.cents(), version, SqlValue::Bytes(bytes)});
    if (status.ok()) status = s.Execute("DELETE FROM tagged WHERE product = ?1", {product.id()});
    for (const std::string& tag : product.tags()) {
      if (status.ok())
        status = s.Execute("INSERT INTO tagged(tag, product) VALUES (?1, ?2)", {tag, product.id()});
    }
    return status;
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"List", {}}, {"Get", {}}, {"Count", {}}, {"Put", {}}};
  }

  SqlDatabase& db;
  const std::unique_ptr<apps::Cache> cache;  // may be null
  // Atomic: the version of the last change, raised once that is on disk (release), part of cached names (acquire).
  std::atomic<uint64_t> newest;
};

HostedService HostedCatalogue() {
  return apps::HostedOnData(
      kApplication, "catalogue", [](Env& env, const apps::DataOptions& data) -> MadeService {
        const auto db = apps::OpenData(env, data, "catalogue", {SchemaOf("catalogue")});
        if (!db.ok()) return db.status();
        auto cache = apps::Cache::Of(env, "catalogue-cache");
        if (!cache.ok()) return cache.status();
        uint64_t version = 0;
        absl::Status read = (*db)->Read(Deadline::In(std::chrono::seconds(10)), [&](SqlSession& s) {
          return CatalogueService::FindNewest(s, &version);
        });
        if (!read.ok()) return read;
        return std::make_unique<CatalogueService>(**db, *std::move(cache), version);
      });
}

}  // namespace curtail::shop
