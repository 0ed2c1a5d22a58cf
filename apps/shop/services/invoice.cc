// SPDX-License-Identifier: Apache-2.0
//
// Invoice: the invoices of orders. An invoice has the number of its order. Orders that commit have numbers without gaps, and each gets its
// invoice, so invoices have none, either.
#include "apps/kit/page.h"
#include "apps/kit/wall_clock.h"
#include "apps/shop/data.h"

namespace curtail::shop {

struct InvoicesService final : Invoices::CoroutineService {
  explicit InvoicesService(SqlDatabase& d) : db(d) {}

  Coroutine Issue(Context& ctx, const InvoiceOrders& request, apps::Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.orders_size(), kMostOrders, "orders"); !status.ok())
      co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (int i = 0; status.ok() && i < request.orders_size(); ++i) status = IssueOne(s, request.orders(i));
      return status;
    });
  }

  static absl::Status IssueOne(SqlSession& s, const InvoiceOrder& order) {
    if (order.number() == 0) return absl::InvalidArgumentError("an invoice has a number");
    const std::string bytes = order.quote().SerializeAsString();
    // ALREADY_EXISTS: the order has another number.
    absl::Status status = s.Execute(
        "INSERT INTO invoices(number, order_id, owner, issued_ms, bytes) VALUES (?1, ?2, ?3, ?4, ?5)"
        " ON CONFLICT(number) DO NOTHING",
        {order.number(), order.order(), order.owner(), apps::NowMs(), SqlValue::Bytes(bytes)});
    if (!status.ok() || s.changes() == 1) return status;
    uint64_t kept = 0;
    status = s.Query("SELECT order_id FROM invoices WHERE number = ?1", {order.number()},
                     [&](const SqlRow& row) { kept = row.Unsigned(0); });
    if (!status.ok() || kept == order.order()) return status;
    return absl::AlreadyExistsError(Join("invoice ", order.number(), " is of order ", kept));
  }

  Coroutine Get(Context& ctx, const OwnedOrder& request, Invoice* reply) override {
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT number, issued_ms, bytes FROM invoices WHERE order_id = ?1 AND owner = ?2",
                     {request.order(), request.owner()}, [&](const SqlRow& row) {
                       const std::string_view bytes = row.Text(2);
                       reply->mutable_quote()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
                       reply->set_number(row.Unsigned(0));
                       reply->set_order(request.order());
                       reply->set_issued_ms(row.Integer(1));
                     });
    });
    if (status.ok() && reply->number() == 0) status = absl::NotFoundError("there is no such invoice");
    co_return status;
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Issue", {}}, {"Get", {}}}; }

  SqlDatabase& db;
};

HostedService HostedInvoice() {
  return apps::HostedWithData<InvoicesService>(kApplication, "invoice", {SchemaOf("invoice")});
}

}  // namespace curtail::shop
