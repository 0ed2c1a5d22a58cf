// SPDX-License-Identifier: Apache-2.0
//
// Discounts: codes for lower prices, and which orders have used them. The use of an order has a state, which changes in the
// transaction that counts the use, so a code is used as often as orders are REDEEMED:
//
//   NONE -> REDEEMED -> RELEASED      NONE -> REFUSED, RELEASED
#include <algorithm>
#include <memory>
#include <string>

#include "apps/kit/data/cache.h"
#include "apps/kit/page.h"
#include "apps/kit/wall_clock.h"
#include "apps/shop/data.h"

namespace curtail::shop {

const char kDiscountsSchema[] =
    "CREATE TABLE codes(code TEXT PRIMARY KEY, discount BLOB NOT NULL, most INTEGER NOT NULL,"
    " ends_ms INTEGER NOT NULL, used INTEGER NOT NULL) STRICT;"
    "CREATE TABLE uses(order_id INTEGER PRIMARY KEY, code TEXT NOT NULL, state INTEGER NOT NULL) STRICT;";
constexpr int kMostCurrent = 100;
constexpr size_t kMostCodeBytes = 32;
constexpr uint32_t kMostPercent = 100;

absl::Status CheckDiscount(const Discount& discount) {
  const std::string& code = discount.code();
  const bool named = !code.empty() && code.size() <= kMostCodeBytes && std::ranges::all_of(code, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
  if (!named) return absl::InvalidArgumentError("a code is 1 to 32 of A-Z and 0-9");
  if (discount.percent() > kMostPercent || discount.cents_off() < 0 || discount.least_cents() < 0 ||
      discount.limit() >> 63 != 0)
    return absl::InvalidArgumentError("a discount is 1 to 100 percent, or cents above 0");
  if ((discount.percent() == 0) == (discount.cents_off() == 0))
    return absl::InvalidArgumentError("a discount has either percent or cents_off");
  return absl::OkStatus();
}

// Rounded down, and at most the price of the goods.
int64_t CentsOff(const Discount& discount, int64_t goods_cents) {
  const int64_t share = goods_cents / 100 * discount.percent() + goods_cents % 100 * discount.percent() / 100;
  return std::min(goods_cents, share + discount.cents_off());
}

struct DiscountsService final : Discounts::CoroutineService {
  DiscountsService(SqlDatabase& d, std::unique_ptr<apps::Cache> c) : db(d), cache(std::move(c)) {}
  enum Use : int { kNone = 0, kRedeemed = 1, kReleased = 2, kRefused = 3 };

  // Those that end first come first; the ones that never end last.
  Coroutine Current(Context& ctx, const apps::Nothing&, DiscountList* reply) override {
    co_return co_await apps::ReadRecent(ctx, cache.get(), "current", reply, [&]() -> Coroutine {
      co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
        return s.Query(
            "SELECT discount FROM codes WHERE (ends_ms = 0 OR ends_ms > ?1) AND (most = 0 OR used < most)"
            " ORDER BY ends_ms = 0, ends_ms, code LIMIT ?2",
            {apps::NowMs(), kMostCurrent},
            [&](const SqlRow& row) { reply->add_discounts()->ParseFromString(std::string(row.Text(0))); });
      });
    });
  }

  // Keeps how often the code was used.
  Coroutine Put(Context& ctx, const Discount& request, apps::Nothing*) override {
    if (absl::Status status = CheckDiscount(request); !status.ok()) co_return status;
    const std::string bytes = request.SerializeAsString();
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute(
          "INSERT INTO codes(code, discount, most, ends_ms, used) VALUES (?1, ?2, ?3, ?4, 0) ON "
          "CONFLICT(code)"
          " DO UPDATE SET discount = excluded.discount, most = excluded.most, ends_ms = excluded.ends_ms",
          {request.code(), SqlValue::Bytes(bytes), request.limit(), request.ends_ms()});
    });
  }

  Coroutine Apply(Context& ctx, const DiscountQuery& request, DiscountCents* reply) override {
    Discount discount;
    bool used_up = false;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT discount, CASE WHEN most = 0 OR used < most THEN 0 ELSE 1 END FROM codes WHERE code = ?1",
          {request.code()}, [&](const SqlRow& row) {
            discount.ParseFromString(std::string(row.Text(0)));
            used_up = row.Integer(1) != 0;
          });
    });
    if (!status.ok()) co_return status;
    if (discount.code().empty()) co_return absl::NotFoundError("there is no such code");
    if (discount.ends_ms() != 0 && discount.ends_ms() <= apps::NowMs())
      co_return absl::FailedPreconditionError("the code has expired");
    if (request.goods_cents() < discount.least_cents())
      co_return absl::FailedPreconditionError(
          Join("the code is for goods of ", discount.least_cents(), " cents or more"));
    if (used_up) co_return UsedUp();
    reply->set_cents(CentsOff(discount, request.goods_cents()));
    co_return absl::OkStatus();
  }
  static absl::Status UsedUp() { return absl::FailedPreconditionError("the code is used up"); }

  // A quote's price stands while the quote does, so a code that expires meanwhile is redeemed.
  Coroutine Redeem(Context& ctx, const Redemptions& request, Outcomes* reply) override {
    absl::Status status = apps::CheckCount(request.orders_size(), kMostOrders, "orders");
    if (!status.ok()) co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      reply->Clear();
      for (const Redemption& one : request.orders()) {
        absl::Status outcome;
        absl::Status written = RedeemOne(s, one, &outcome);
        if (!written.ok()) return written;
        AddOutcome(one.order(), outcome, reply);
      }
      return absl::OkStatus();
    });
  }

  static absl::Status RedeemOne(SqlSession& s, const Redemption& one, absl::Status* outcome) {
    int use = kNone;
    absl::Status status = Find(s, one.order(), &use, /*code=*/nullptr);
    if (status.ok() && use == kNone) {
      // The one write that counts decides.
      status = s.Execute("UPDATE codes SET used = used + 1 WHERE code = ?1 AND (most = 0 OR used < most)",
                         {one.code()});
      use = s.changes() > 0 ? kRedeemed : kRefused;
      if (status.ok())
        status = s.Execute("INSERT INTO uses(order_id, code, state) VALUES (?1, ?2, ?3)",
                           {one.order(), one.code(), use});
    }
    if (use == kRefused) *outcome = UsedUp();
    if (use == kReleased) *outcome = absl::FailedPreconditionError("the order gave its code back");
    return status;
  }

  Coroutine Release(Context& ctx, const apps::Ids& request, apps::Nothing*) override {
    absl::Status status = apps::CheckCount(request.ids_size(), kMostOrders, "orders");
    if (!status.ok()) co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status released;
      for (int i = 0; released.ok() && i < request.ids_size(); ++i) released = ReleaseOne(s, request.ids(i));
      return released;
    });
  }

  static absl::Status ReleaseOne(SqlSession& s, uint64_t order) {
    int use = kNone;
    std::string code;
    absl::Status status = Find(s, order, &use, &code);
    if (!status.ok() || use == kReleased || use == kRefused) return status;
    if (use == kRedeemed) status = s.Execute("UPDATE codes SET used = used - 1 WHERE code = ?1", {code});
    if (!status.ok()) return status;
    return s.Execute(
        "INSERT INTO uses(order_id, code, state) VALUES (?1, '', ?2)"
        " ON CONFLICT(order_id) DO UPDATE SET state = excluded.state",
        {order, kReleased});
  }

  static absl::Status Find(SqlSession& s, uint64_t order, int* use, std::string* code) {
    return s.Query("SELECT state, code FROM uses WHERE order_id = ?1", {order}, [&](const SqlRow& row) {
      *use = static_cast<int>(row.Integer(0));
      if (code != nullptr) *code = row.Text(1);
    });
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Current", {}}, {"Put", {}}, {"Apply", {}}, {"Redeem", {}}, {"Release", {}}};
  }

  SqlDatabase& db;
  const std::unique_ptr<apps::Cache> cache;  // may be null
};

HostedService HostedDiscounts() {
  return apps::HostedOnData(kApplication, "discounts",
                            [](Env& env, const apps::DataOptions& data) -> MadeService {
                              auto cache = apps::Cache::Of(env, "discounts-cache");
                              if (!cache.ok()) return cache.status();
                              const auto db = apps::OpenData(env, data, "discounts", {kDiscountsSchema});
                              if (!db.ok()) return db.status();
                              return std::make_unique<DiscountsService>(**db, *std::move(cache));
                            });
}

}  // namespace curtail::shop
