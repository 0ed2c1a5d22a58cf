// SPDX-License-Identifier: Apache-2.0
//
// Inventory: how many there are of each product. An order has a row with its state, which changes in the transaction that moves its
// pieces. No clock ends a reservation: an order ends as it was decided, and only that.
#include <algorithm>
#include <set>

#include "apps/kit/page.h"
#include "apps/shop/common/reserved.h"
#include "apps/shop/data.h"

namespace curtail::shop {

constexpr uint32_t kMostDelivered = 1'000'000;

const char kInventorySchema[] =
    "CREATE TABLE stocks(product INTEGER PRIMARY KEY, on_hand INTEGER NOT NULL CHECK(on_hand >= 0),"
    " reserved INTEGER NOT NULL CHECK(reserved >= 0), sold INTEGER NOT NULL CHECK(sold >= 0),"
    " delivered INTEGER NOT NULL, CHECK(on_hand + reserved + sold = delivered)) STRICT;"
    "CREATE TABLE deliveries(name TEXT PRIMARY KEY, product INTEGER NOT NULL, count INTEGER NOT NULL) STRICT;"
    "CREATE TABLE reservations(order_id INTEGER PRIMARY KEY, state INTEGER NOT NULL, bytes BLOB NOT NULL,"
    " why TEXT NOT NULL) STRICT";

struct Reservation {
  Reserved state = Reserved::kNone;
  OrderLines of;
  std::string why;  // if it is kRefused
};

struct InventoryService final : Inventory::CoroutineService {
  explicit InventoryService(SqlDatabase& d) : db(d) {}

  Coroutine Deliver(Context& ctx, const Delivery& request, apps::Nothing*) override {
    if (request.name().empty() || request.name().size() > 64 || request.product() == 0 ||
        request.count() < 1 || request.count() > kMostDelivered)
      co_return absl::InvalidArgumentError(
          Join("a delivery has a name of 1 to 64 bytes and 1 to ", kMostDelivered, " of a product"));
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = s.Execute(
          "INSERT INTO deliveries(name, product, count) VALUES (?1, ?2, ?3) ON CONFLICT(name) DO NOTHING",
          {request.name(), request.product(), uint64_t{request.count()}});
      if (!status.ok()) return status;
      if (s.changes() == 0) return CheckSame(s, request);
      return s.Execute(
          "INSERT INTO stocks(product, on_hand, reserved, sold, delivered) VALUES (?1, ?2, 0, 0, ?2)"
          " ON CONFLICT(product) DO UPDATE SET on_hand = stocks.on_hand + ?2,"
          " delivered = stocks.delivered + ?2",
          {request.product(), uint64_t{request.count()}});
    });
  }

  static absl::Status CheckSame(SqlSession& s, const Delivery& delivery) {
    bool same = false;
    absl::Status status = s.Query(
        "SELECT product, count FROM deliveries WHERE name = ?1", {delivery.name()}, [&](const SqlRow& row) {
          same = row.Unsigned(0) == delivery.product() && row.Unsigned(1) == delivery.count();
        });
    if (!status.ok() || same) return status;
    return absl::AlreadyExistsError("the delivery has come with another product or count");
  }

  Coroutine Available(Context& ctx, const apps::Ids& request, StockList* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "products"); !status.ok())
      co_return status;
    for (const uint64_t product : request.ids()) reply->add_stocks()->set_product(product);
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach("SELECT on_hand, reserved, sold, delivered FROM stocks WHERE product = ?1", 1,
                         apps::Each(request.ids()), [&](size_t run, const SqlRow& row) {
                           Stock& stock = *reply->mutable_stocks(static_cast<int>(run));
                           stock.set_on_hand(row.Integer(0));
                           stock.set_reserved(row.Integer(1));
                           stock.set_sold(row.Integer(2));
                           stock.set_delivered(row.Integer(3));
                         });
    });
  }

  Coroutine Reserve(Context& ctx, const Reservations& request, Outcomes* reply) override {
    absl::Status status = apps::CheckCount(request.orders_size(), kMostOrders, "orders");
    for (const OrderLines& order : request.orders()) status.Update(Check(order));
    if (!status.ok()) co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      reply->clear_outcomes();
      absl::Status done;
      for (int i = 0; done.ok() && i < request.orders_size(); ++i)
        done = ReserveOne(s, request.orders(i), reply);
      return done;
    });
  }

  static absl::Status Check(const OrderLines& order) {
    std::set<uint64_t> products;
    for (const Line& line : order.lines()) {
      if (line.count() < 1 || line.count() > kMostOfProduct || !products.insert(line.product()).second)
        return absl::InvalidArgumentError("an order has 1 to 99 of a product, in one line");
    }
    return apps::CheckCount(order.lines_size(), kMostLines, "lines");
  }

  static absl::Status ReserveOne(SqlSession& s, const OrderLines& order, Outcomes* reply) {
    Reservation kept;
    absl::Status status = Read(s, order.order(), &kept);
    if (status.ok() && kept.state == Reserved::kNone) status = ReserveFresh(s, order, &kept);
    if (!status.ok()) return status;
    absl::Status outcome;
    if (kept.state == Reserved::kReleased)
      outcome = absl::FailedPreconditionError("the reservation was taken back");
    else if (kept.of.SerializeAsString() != order.SerializeAsString())
      outcome = absl::AlreadyExistsError("the order has other lines");
    else if (kept.state == Reserved::kRefused) outcome = absl::FailedPreconditionError(kept.why);
    AddOutcome(order.order(), outcome, reply);
    return status;
  }

  static absl::Status ReserveFresh(SqlSession& s, const OrderLines& order, Reservation* kept) {
    std::string lacking;
    for (const Line& line : order.lines()) {
      int64_t on_hand = 0;
      absl::Status status = s.Query("SELECT on_hand FROM stocks WHERE product = ?1", {line.product()},
                                    [&](const SqlRow& row) { on_hand = row.Integer(0); });
      if (!status.ok()) return status;
      if (on_hand < line.count())
        lacking += Join(lacking.empty() ? "" : ", ", line.product(), " (", on_hand, " left)");
    }
    kept->of = order;
    kept->state = lacking.empty() ? Reserved::kReserved : Reserved::kRefused;
    if (!lacking.empty()) kept->why = Join("there are too few of the products ", lacking);
    absl::Status status = Write(s, order.order(), *kept);
    return lacking.empty() && status.ok() ? Move(s, order, Reserved::kNone, Reserved::kReserved) : status;
  }

  // Moves the pieces of an order.
  static absl::Status Move(SqlSession& s, const OrderLines& order, Reserved from, Reserved to) {
    const auto by = [&](Reserved which) { return int64_t{to == which} - int64_t{from == which}; };
    const int64_t held = by(Reserved::kReserved), sold = by(Reserved::kSold);
    for (const Line& line : order.lines()) {
      const int64_t count = line.count();
      absl::Status status = s.Execute(
          "UPDATE stocks SET on_hand = on_hand - ?2 - ?3, reserved = reserved + ?2, sold = sold + ?3"
          " WHERE product = ?1",
          {line.product(), held * count, sold * count});
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  static absl::Status Read(SqlSession& s, uint64_t order, Reservation* kept) {
    bool readable = true;
    absl::Status status = s.Query(
        "SELECT state, bytes, why FROM reservations WHERE order_id = ?1", {order}, [&](const SqlRow& row) {
          kept->state = static_cast<Reserved>(row.Integer(0));
          const std::string_view bytes = row.Text(1);
          readable = kept->of.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
          kept->why = row.Text(2);
        });
    if (!status.ok() || readable) return status;
    return absl::DataLossError(Join("the reservation of order ", order, " is unreadable"));
  }

  static absl::Status Write(SqlSession& s, uint64_t order, const Reservation& kept) {
    const std::string bytes = kept.of.SerializeAsString();
    return s.Execute(
        "INSERT INTO reservations(order_id, state, bytes, why) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT(order_id) DO UPDATE SET state = ?2",
        {order, static_cast<int>(kept.state), SqlValue::Bytes(bytes), kept.why});
  }

  Coroutine Commit(Context& ctx, const apps::Ids& request, apps::Nothing*) override {
    return End(ctx, request, Reserved::kSold);
  }
  Coroutine TakeBack(Context& ctx, const apps::Ids& request, apps::Nothing*) override {
    return End(ctx, request, Reserved::kReturned);
  }
  Coroutine Release(Context& ctx, const apps::Ids& request, apps::Nothing*) override {
    return End(ctx, request, Reserved::kReleased);
  }

  Coroutine End(Context& ctx, const apps::Ids& orders, Reserved to) {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = apps::CheckCount(orders.ids_size(), kMostOrders, "orders");
      for (int i = 0; status.ok() && i < orders.ids_size(); ++i) status = EndOne(s, orders.ids(i), to);
      return status;
    });
  }

  static absl::Status EndOne(SqlSession& s, uint64_t order, Reserved to) {
    Reservation kept;
    absl::Status status = Read(s, order, &kept);
    const Reserved from = kept.state;
    const bool released = to == Reserved::kReleased;
    if (!status.ok() || from == to || (released && from == Reserved::kRefused) ||
        (to == Reserved::kSold && from == Reserved::kReturned))
      return status;
    if (to == Reserved::kReturned && from != Reserved::kSold)
      return absl::FailedPreconditionError(Join("order ", order, " is not sold"));
    if (to != Reserved::kReturned && from != Reserved::kReserved && !(released && from == Reserved::kNone))
      return absl::FailedPreconditionError(
          Join("order ", order, from == Reserved::kSold ? " is sold" : " has no reservation"));
    kept.state = to;
    status = Write(s, order, kept);
    return status.ok() ? Move(s, kept.of, from, to) : status;
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Deliver", {}}, {"Available", {}}, {"Reserve", {}},
            {"Commit", {}},  {"TakeBack", {}},  {"Release", {}}};
  }

  SqlDatabase& db;
};

HostedService HostedInventory() {
  return apps::HostedWithData<InventoryService>(kApplication, "inventory", {kInventorySchema});
}

}  // namespace curtail::shop
