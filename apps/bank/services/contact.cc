// SPDX-License-Identifier: Apache-2.0
//
// Contact: bookings of half hours with representatives, and messages to the bank. A half hour is booked by the one write that inserts
// its row: the index `taken` has one open booking of it. A cancelled booking stays, so that Cancel may be repeated.
#include <algorithm>
#include <utility>

#include "apps/bank/common/branches.h"
#include "apps/bank/common/leaving.h"
#include "apps/bank/common/orders.h"
#include "apps/bank/data.h"
#include "apps/kit/once.h"
#include "apps/kit/page.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

const char kContactSchema[] =
    "CREATE TABLE bookings(id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, representative INTEGER NOT "
    "NULL,"
    " starts_ms INTEGER NOT NULL, cancelled INTEGER NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX taken ON bookings(representative, starts_ms) WHERE cancelled = 0;"
    "CREATE INDEX bookings_of ON bookings(customer, starts_ms);"
    "CREATE TABLE messages(id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, text TEXT NOT NULL,"
    " written_ms INTEGER NOT NULL) STRICT;"
    "CREATE INDEX messages_of ON messages(customer, id)";
constexpr int64_t kHalfHourMs = 1'800'000, kDayMs = 48 * kHalfHourMs;
constexpr int64_t kOpensMs = 9 * 2 * kHalfHourMs, kClosesMs = 17 * 2 * kHalfHourMs;  // in UTC
constexpr int64_t kDaysAhead = 14;
constexpr int64_t kMostBookings = 5, kMostHalfHours = 50;  // open ones; those to come, with the cancelled
constexpr int64_t kMostMessages = 1'000;                   // of a customer
constexpr size_t kMostMessageBytes = 4'000;

struct ContactService final : Contact::CoroutineService {
  ContactService(SqlDatabase& d, Env& e) : db(d), env(e) {}

  Coroutine Representatives(Context&, const RepresentativeQuery& request,
                            RepresentativeList* reply) override {
    if (absl::Status status = CheckPlace(request.near()); !status.ok()) co_return status;
    std::vector<std::pair<double, const Representative*>> found;
    for (const Representative& one : AllRepresentatives()) {
      if (!request.topic().empty() && request.topic() != one.topic()) continue;
      found.emplace_back(request.has_near() ? KilometresBetween(request.near(), one.branch().place()) : 0,
                         &one);
    }
    std::ranges::sort(found, {}, [](const auto& one) { return std::pair(one.first, one.second->id()); });
    found.resize(std::min<size_t>(found.size(), apps::LimitOf(request.limit())));
    for (const auto& [distance, one] : found) *reply->add_representatives() = *one;
    co_return absl::OkStatus();
  }

  static bool IsOpen(int64_t ms) {
    const int64_t weekday = (ms / kDayMs + 3) % 7;  // 0: a Monday; 1970 began on a Thursday
    return weekday < 5 && ms % kDayMs >= kOpensMs && ms % kDayMs < kClosesMs;
  }
  static absl::Status CheckRepresentative(uint64_t id) {
    if (id >= 1 && id <= AllRepresentatives().size()) return absl::OkStatus();
    return absl::NotFoundError(Join("the bank does not have a representative ", id));
  }

  Coroutine Slots(Context& ctx, const SlotQuery& request, SlotList* reply) override {
    if (absl::Status status = CheckRepresentative(request.representative()); !status.ok()) co_return status;
    const int64_t now = apps::NowMs(), end = now + kDaysAhead * kDayMs;
    std::vector<int64_t> taken;
    const absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT starts_ms FROM bookings WHERE representative = ?1 AND cancelled = 0 AND starts_ms > ?2"
          " ORDER BY starts_ms",
          {request.representative(), now}, [&](const SqlRow& row) { taken.push_back(row.Integer(0)); });
    });
    for (int64_t ms = (now / kHalfHourMs + 1) * kHalfHourMs; ms <= end; ms += kHalfHourMs)
      if (IsOpen(ms) && !std::ranges::binary_search(taken, ms)) reply->add_starts_ms(ms);
    co_return read;
  }

  Coroutine Book(Context& ctx, const BookingOrder& request, Booking* reply) override {
    absl::Status status = CheckRepresentative(request.representative());
    if (!status.ok()) co_return status;
    if (request.starts_ms() < 0 || request.starts_ms() % kHalfHourMs != 0 || !IsOpen(request.starts_ms()))
      co_return absl::InvalidArgumentError(
          "starts_ms is a full or half hour from 9:00 to 16:30 UTC, Monday to Friday");
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, apps::UniqueId::kNext, OneId()));
    if (!ids.ok()) co_return ids.status();
    co_return co_await apps::WriteOnce(db, ctx, request.customer(), reply,
                                       [&](SqlSession& s) { return Insert(s, ids->ids(0), request, reply); });
  }

  static absl::Status Insert(SqlSession& s, uint64_t id, const BookingOrder& order, Booking* reply) {
    const int64_t now = apps::NowMs();
    if (order.starts_ms() <= now || order.starts_ms() > now + kDaysAhead * kDayMs)
      return absl::FailedPreconditionError(Join("the half hour is not in the next ", kDaysAhead, " days"));
    int64_t all = 0, cancelled = 0;
    absl::Status status = CheckStays(s, order.customer());
    if (status.ok())
      status = s.Query(
          "SELECT COUNT(*), coalesce(SUM(cancelled), 0) FROM bookings WHERE customer = ?1 AND starts_ms > ?2",
          {order.customer(), now},
          [&](const SqlRow& row) { all = row.Integer(0), cancelled = row.Integer(1); });
    if (status.ok() && all - cancelled >= kMostBookings)
      status = absl::ResourceExhaustedError(Join("the customer has ", kMostBookings, " open bookings"));
    if (status.ok() && all >= kMostHalfHours)
      status = absl::ResourceExhaustedError(
          "the customer has cancelled too many bookings: try again in some days");
    if (!status.ok()) return status;
    status = s.Execute(
        "INSERT INTO bookings(id, customer, representative, starts_ms, cancelled) VALUES (?1, ?2, ?3, ?4, 0)"
        " ON CONFLICT DO NOTHING",
        {id, order.customer(), order.representative(), order.starts_ms()});
    if (status.ok() && s.changes() == 0) status = absl::FailedPreconditionError("the half hour is taken");
    reply->set_id(id);
    reply->set_representative(order.representative());
    reply->set_starts_ms(order.starts_ms());
    return status;
  }

  static constexpr char kBookingColumns[] =
      "SELECT id, representative, starts_ms, cancelled FROM bookings WHERE customer = ?1";
  static void Show(const SqlRow& row, Booking* reply) {
    reply->set_id(row.Unsigned(0));
    reply->set_representative(row.Unsigned(1));
    reply->set_starts_ms(row.Integer(2));
    reply->set_cancelled(row.Integer(3) != 0);
  }

  Coroutine Bookings(Context& ctx, const apps::UserId& request, BookingList* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(Join(kBookingColumns, " AND cancelled = 0 AND starts_ms > ?2 ORDER BY starts_ms, id"),
                     {request.user(), apps::NowMs()},
                     [&](const SqlRow& row) { Show(row, reply->add_bookings()); });
    });
  }

  Coroutine Cancel(Context& ctx, const PaymentQuery& request, Booking* reply) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      reply->Clear();
      absl::Status status = s.Query(Join(kBookingColumns, " AND id = ?2"), {request.customer(), request.id()},
                                    [&](const SqlRow& row) { Show(row, reply); });
      if (!status.ok() || reply->cancelled()) return status;
      if (reply->id() == 0) return absl::NotFoundError(Join("there is no booking ", request.id()));
      if (reply->starts_ms() <= apps::NowMs())
        return absl::FailedPreconditionError("the half hour has begun");
      reply->set_cancelled(true);
      return s.Execute("UPDATE bookings SET cancelled = 1 WHERE id = ?1", {request.id()});
    });
  }

  Coroutine Write(Context& ctx, const MessageOrder& request, WrittenMessage* reply) override {
    if (request.text().empty() || request.text().size() > kMostMessageBytes)
      co_return absl::InvalidArgumentError(Join("a message has 1 to ", kMostMessageBytes, " bytes"));
    if (std::ranges::any_of(request.text(),
                            [](unsigned char c) { return (c < ' ' && c != '\n') || c == 127; }))
      co_return absl::InvalidArgumentError("a message has no control characters but ends of lines");
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, apps::UniqueId::kNext, OneId()));
    if (!ids.ok()) co_return ids.status();
    co_return co_await apps::WriteOnce(db, ctx, request.customer(), reply, [&](SqlSession& s) {
      int64_t all = 0;
      absl::Status status = CheckStays(s, request.customer());
      if (status.ok())
        status = s.Query("SELECT COUNT(*) FROM messages WHERE customer = ?1", {request.customer()},
                         [&](const SqlRow& row) { all = row.Integer(0); });
      if (status.ok() && all >= kMostMessages)
        status = absl::ResourceExhaustedError(Join("the customer has written ", kMostMessages, " messages"));
      if (!status.ok()) return status;
      reply->set_id(ids->ids(0));
      reply->set_text(request.text());
      reply->set_written_ms(apps::NowMs());
      return s.Execute("INSERT INTO messages(id, customer, text, written_ms) VALUES (?1, ?2, ?3, ?4)",
                       {reply->id(), request.customer(), request.text(), reply->written_ms()});
    });
  }

  Coroutine Messages(Context& ctx, const MessageQuery& request, MessageList* reply) override {
    const uint64_t limit = apps::LimitOf(request.limit());
    const absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT id, text, written_ms FROM messages WHERE customer = ?1 AND id < ?2 ORDER BY id DESC LIMIT "
          "?3",
          {request.customer(), apps::BeforeOf(request.before()), limit}, [&](const SqlRow& row) {
            WrittenMessage* const message = reply->add_messages();
            message->set_id(row.Unsigned(0));
            message->set_text(std::string(row.Text(1)));
            message->set_written_ms(row.Integer(2));
          });
    });
    if (static_cast<uint64_t>(reply->messages_size()) == limit)
      reply->set_next(reply->messages().rbegin()->id());
    co_return read;
  }

  Coroutine Forget(Context& ctx, const LeaveOrder& request, apps::Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = Leave(s, request.customer(), request.attempt());
      if (status.ok())
        status = s.Execute("UPDATE bookings SET cancelled = 1 WHERE customer = ?1 AND starts_ms > ?2",
                           {request.customer(), apps::NowMs()});
      if (status.ok()) status = s.Execute("DELETE FROM messages WHERE customer = ?1", {request.customer()});
      return status.ok() ? apps::ForgetRequests(s, request.customer()) : status;
    });
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Representatives", {}}, {"Slots", {}},          {"Book", {unique_id}}, {"Bookings", {}},
            {"Cancel", {}},          {"Write", {unique_id}}, {"Messages", {}},      {"Forget", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
};

HostedService HostedContact() {
  return apps::HostedWithData<ContactService>(kApplication, "contact",
                                              {kContactSchema, apps::kOnceSchema, kLeavingSchema});
}

}  // namespace curtail::bank
