// SPDX-License-Identifier: Apache-2.0
//
// Shipping: what it costs to send an order, and the shipments of orders.
#include <algorithm>

#include "apps/kit/page.h"
#include "apps/kit/wall_clock.h"
#include "apps/shop/data.h"

namespace curtail::shop {

constexpr uint64_t kMostGrams = 1'000'000;
constexpr std::string_view kHome = "US";
constexpr int64_t kDayMs = 86'400'000;

// The cents of each started kilogram, and days, at home; abroad they are doubled.
struct ShippingKind {
  const char* name;
  int64_t cents, cents_of_kg;
  uint32_t days;
};
constexpr ShippingKind kShippingKinds[] = {{"standard", 399, 50, 5}, {"express", 1299, 150, 1}};

ShippingOption OptionOf(const ShippingKind& kind, const std::string& country, uint64_t grams) {
  const int abroad = country == kHome ? 1 : 2;
  ShippingOption option;
  option.set_name(kind.name);
  option.set_cents(abroad * (kind.cents + kind.cents_of_kg * static_cast<int64_t>((grams + 999) / 1000)));
  option.set_days(static_cast<uint32_t>(abroad) * kind.days);
  return option;
}

struct ShippingService final : Shipping::CoroutineService {
  explicit ShippingService(SqlDatabase& d) : db(d) {}

  Coroutine Options(Context&, const ShippingQuery& request, ShippingOptions* reply) override {
    const std::string& country = request.address().country();
    if (country.size() != 2 || !std::ranges::all_of(country, [](char c) { return c >= 'A' && c <= 'Z'; }))
      co_return absl::InvalidArgumentError("the address has no country of two capital letters");
    if (request.grams() > kMostGrams) co_return absl::InvalidArgumentError("nothing above 1,000 kg is sent");
    for (const ShippingKind& kind : kShippingKinds)
      *reply->add_options() = OptionOf(kind, country, request.grams());
    co_return absl::OkStatus();
  }

  Coroutine Create(Context& ctx, const ShipmentOrders& request, apps::Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.orders_size(), kMostOrders, "orders"); !status.ok())
      co_return status;
    const int64_t now = apps::NowMs();
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const ShipmentOrder& order : request.orders()) {
        const ShippingKind* const kind = std::ranges::find_if(
            kShippingKinds, [&](const ShippingKind& one) { return order.option() == one.name; });
        if (kind == std::end(kShippingKinds))
          return absl::InvalidArgumentError("there is no such shipping option");
        const int64_t days = OptionOf(*kind, order.address().country(), 0).days();
        const std::string bytes = order.SerializeAsString();
        status = s.Execute(
            "INSERT INTO shipments(order_id, owner, created_ms, due_ms, bytes) VALUES (?1, ?2, ?3, ?4, ?5)"
            " ON CONFLICT(order_id) DO NOTHING",
            {order.order(), order.owner(), now, now + days * kDayMs, SqlValue::Bytes(bytes)});
        if (!status.ok()) break;
      }
      return status;
    });
  }

  Coroutine Track(Context& ctx, const OwnedOrder& request, Shipment* reply) override {
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT created_ms, due_ms, bytes FROM shipments WHERE order_id = ?1 AND owner = ?2",
                     {request.order(), request.owner()}, [&](const SqlRow& row) {
                       ShipmentOrder order;
                       const std::string_view bytes = row.Text(2);
                       order.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
                       reply->set_order(request.order());
                       reply->set_tracking(Join("CT", request.order()));
                       reply->set_option(order.option());
                       reply->set_created_ms(row.Integer(0));
                       reply->set_due_ms(row.Integer(1));
                     });
    });
    if (status.ok() && reply->order() == 0) status = absl::NotFoundError("there is no such shipment");
    co_return status;
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Options", {}}, {"Create", {}}, {"Track", {}}};
  }

  SqlDatabase& db;
};

HostedService HostedShipping() {
  return apps::HostedWithData<ShippingService>(kApplication, "shipping", {SchemaOf("shipping")});
}

}  // namespace curtail::shop
