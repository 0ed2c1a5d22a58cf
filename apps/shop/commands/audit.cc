// SPDX-License-Identifier: Apache-2.0
#include "apps/shop/commands/audit.h"

#include <cstdint>
#include <map>
#include <utility>

#include "apps/kit/data/data.h"
#include "apps/kit/data/folder.h"
#include "apps/shop/common/reserved.h"
#include "apps/shop/data.h"
#include "goods.curtail.h"

namespace curtail::shop {
namespace {

constexpr int64_t kRedeemed = 1;  // the state of a use, as discounts.cc has it

struct AuditedOrder {
  uint64_t owner = 0, number = 0;
  Order::State state = Order::PLACED;
  Quote quote;
  bool Refunded() const { return state == Order::REFUNDED; }
  bool Bought() const { return state == Order::COMMITTED || Refunded(); }
  bool charged = false, reserved = false, invoiced = false, shipped = false, discounted = false;
};

// The orders, and what other services have of them. Each step compares the rows of one service, and returns the first wrong one.
class ShopAudit {
 public:
  explicit ShopAudit(std::string folder) : folder_(std::move(folder)) {}

  absl::Status Run() {
    absl::Status status = Orders();
    if (status.ok()) status = Charges();
    if (status.ok()) status = Reservations();
    if (status.ok()) status = Stocks();
    if (status.ok()) status = Invoices();
    if (status.ok()) status = Shipments();
    if (status.ok()) status = Discounts();
    return status.ok() ? Complete() : status;
  }

 private:
  // Calls `check(row)`, which returns what is wrong with a row, or an empty text.
  template <class Check>
  absl::Status Each(std::string_view service, std::string_view sql, Check check) {
    absl::Status wrong;
    absl::Status status = apps::LookAtData(folder_, service, [&](SqlSession& s) {
      return s.Query(sql, {}, [&](const SqlRow& row) {
        if (!wrong.ok()) return;
        if (std::string what = check(row); !what.empty())
          wrong = absl::DataLossError(Join(service, ": ", what));
      });
    });
    return status.ok() ? wrong : status;
  }

  AuditedOrder* Find(uint64_t id) {
    const auto found = orders_.find(id);
    return found == orders_.end() ? nullptr : &found->second;
  }

  absl::Status Orders() {
    uint64_t last = 0, open = 0;
    absl::Status status =
        Each("orders", "SELECT id, owner, state, number, open, bytes FROM orders ORDER BY number, id",
             [&](const SqlRow& row) -> std::string {
               AuditedOrder& order = orders_[row.Unsigned(0)];
               order.owner = row.Unsigned(1);
               order.state = static_cast<Order::State>(row.Integer(2));
               order.number = row.Unsigned(3);
               if (row.Integer(4) != 0) open = row.Unsigned(0);
               KeptOrder kept;
               if (!kept.ParseFromString(std::string(row.Text(5))))
                 return Join("order ", row.Unsigned(0), " is unreadable");
               order.quote = kept.quote();
               const bool numbered = order.number != 0;
               if (numbered != order.Bought() || (numbered && order.number != ++last))
                 return Join("order ", row.Unsigned(0), " has the number ", order.number);
               return ComplaintOf(row.Unsigned(0), order.quote);
             });
    if (status.ok() && open != 0) return absl::UnavailableError(Join("order ", open, " is still open"));
    return status;
  }

  static std::string ComplaintOf(uint64_t id, const Quote& quote) {
    int64_t goods = 0;
    for (const QuotedLine& line : quote.lines()) goods += line.cents() * line.count();
    if (goods == quote.goods_cents() &&
        quote.total_cents() == goods - quote.discount_cents() + quote.shipping_cents())
      return {};
    return Join("the total of order ", id, " is ", quote.total_cents(), ", and its lines cost ", goods);
  }

  absl::Status Charges() {
    return Each("payment", "SELECT order_id, owner, cents, state FROM charges",
                [&](const SqlRow& row) -> std::string {
                  AuditedOrder* const order = Find(row.Unsigned(0));
                  const int64_t state = row.Integer(3);
                  const bool bought = order != nullptr && order->Bought();
                  const bool ended = state == Charge::VOIDED || state == Charge::DECLINED;
                  if (bought ? state != (order->Refunded() ? Charge::REFUNDED : Charge::CAPTURED) : !ended)
                    return Join("the charge of order ", row.Unsigned(0), " is in state ", state);
                  if (!bought) return {};
                  order->charged =
                      row.Unsigned(1) == order->owner && row.Integer(2) == order->quote.total_cents();
                  if (order->charged) return {};
                  return Join("order ", row.Unsigned(0), " was charged ", row.Integer(2), " cents, not ",
                              order->quote.total_cents());
                });
  }

  absl::Status Reservations() {
    return Each(
        "inventory", "SELECT order_id, state, bytes FROM reservations",
        [&](const SqlRow& row) -> std::string {
          AuditedOrder* const order = Find(row.Unsigned(0));
          const auto state = static_cast<Reserved>(row.Integer(1));
          const bool bought = order != nullptr && order->Bought();
          const bool ended = state == Reserved::kReleased || state == Reserved::kRefused;
          if (bought ? state != (order->Refunded() ? Reserved::kReturned : Reserved::kSold) : !ended)
            return Join("the reservation of order ", row.Unsigned(0), " is in state ", row.Integer(1));
          if (!bought) return {};
          OrderLines lines;
          if (!lines.ParseFromString(std::string(row.Text(2))) ||
              lines.lines_size() != order->quote.lines_size())
            return Join("order ", row.Unsigned(0), " has reserved other lines");
          for (int i = 0; i < lines.lines_size(); ++i) {
            const QuotedLine& quoted = order->quote.lines(i);
            if (lines.lines(i).product() != quoted.product() || lines.lines(i).count() != quoted.count())
              return Join("order ", row.Unsigned(0), " has reserved other lines");
            if (!order->Refunded()) sold_[quoted.product()] += quoted.count();
          }
          order->reserved = true;
          return {};
        });
  }

  absl::Status Stocks() {
    return Each(
        "inventory",
        "SELECT product, on_hand, reserved, sold, delivered, (SELECT CAST(coalesce(sum(count), 0) AS INTEGER)"
        " FROM deliveries WHERE deliveries.product = stocks.product) FROM stocks",
        [&](const SqlRow& row) -> std::string {
          const int64_t on_hand = row.Integer(1), reserved = row.Integer(2), sold = row.Integer(3);
          if (on_hand < 0 || reserved != 0 || sold != sold_[row.Unsigned(0)] ||
              on_hand + sold != row.Integer(4) || row.Integer(4) != row.Integer(5))
            return Join("of product ", row.Unsigned(0), " ", on_hand, " are on hand, ", reserved,
                        " reserved, ", sold, " sold and ", row.Integer(5),
                        " delivered, and orders have bought ", sold_[row.Unsigned(0)]);
          return {};
        });
  }

  absl::Status Invoices() {
    uint64_t last = 0;
    return Each("invoice", "SELECT number, order_id, owner, bytes FROM invoices ORDER BY number",
                [&](const SqlRow& row) -> std::string {
                  AuditedOrder* const order = Find(row.Unsigned(1));
                  if (row.Unsigned(0) != ++last || order == nullptr || order->number != last ||
                      order->owner != row.Unsigned(2) || row.Text(3) != order->quote.SerializeAsString())
                    return Join("invoice ", row.Unsigned(0), " of order ", row.Unsigned(1),
                                " is not the order's");
                  order->invoiced = true;
                  return {};
                });
  }

  absl::Status Shipments() {
    return Each("shipping", "SELECT order_id, owner FROM shipments", [&](const SqlRow& row) -> std::string {
      AuditedOrder* const order = Find(row.Unsigned(0));
      if (order == nullptr || !order->Bought() || order->owner != row.Unsigned(1))
        return Join("order ", row.Unsigned(0), " is sent and not sold");
      order->shipped = true;
      return {};
    });
  }

  absl::Status Discounts() {
    std::map<std::string, int64_t> used;
    absl::Status status =
        Each("discounts", "SELECT order_id, code, state FROM uses", [&](const SqlRow& row) -> std::string {
          AuditedOrder* const order = Find(row.Unsigned(0));
          const bool bought = order != nullptr && order->Bought();
          if (bought != (row.Integer(2) == kRedeemed) ||
              (bought && order->quote.discount_code() != row.Text(1)))
            return Join("order ", row.Unsigned(0), " has a use of code ", row.Text(1), " in state ",
                        row.Integer(2));
          if (bought) order->discounted = true, ++used[std::string(row.Text(1))];
          return {};
        });
    if (!status.ok()) return status;
    return Each("discounts", "SELECT code, most, used FROM codes", [&](const SqlRow& row) -> std::string {
      const int64_t most = row.Integer(1), count = row.Integer(2);
      if (count == used[std::string(row.Text(0))] && (most == 0 || count <= most)) return {};
      return Join("code ", row.Text(0), " was used ", count, " times, by ", used[std::string(row.Text(0))],
                  " orders");
    });
  }

  absl::Status Complete() const {
    for (const auto& [id, order] : orders_) {
      const bool whole = order.charged && order.reserved && order.invoiced && order.shipped &&
                         order.discounted == !order.quote.discount_code().empty();
      if (order.Bought() && !whole)
        return absl::DataLossError(Join(
            "order ", id, " is sold, and lacks its charge, reservation, invoice, shipment or use of a code"));
    }
    return absl::OkStatus();
  }

  const std::string folder_;
  std::map<uint64_t, AuditedOrder> orders_;
  std::map<uint64_t, int64_t> sold_;  // by product
};

}  // namespace

absl::Status Audit(const std::string& data) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data);
  return folder.ok() ? ShopAudit(*folder).Run() : folder.status();
}

}  // namespace curtail::shop
