// SPDX-License-Identifier: Apache-2.0
//
// Customer info: addresses of customers, and their end.
//
// DESIGN. A customer is closed by a saga with its id, so that there is one; its rounds are the attempts of leaving.h.
//
//  C1  kLeaving: each service takes leave. Then the books of all shards look, and after that they close each account of the
//      customer. All balances are 0 from then on. Nothing between these accounts is on its way when the first is closed: a closed
//      one refuses it for ever (L7 of ledger.cc), even if C4 opens it again.
//  C2  The decision is the next state: kLeft, or kStaying if one has refused.
//  C3  kLeft: `user` ends the sessions, `contact` cancels bookings, then the address is forgotten. kClosed.
//  C4  kStaying: the services, then the books take C1 back. kStays. A repetition begins with C1.
//
// Close() looks at all balances first, so that a customer who has money is not held up by C1. It may have some by then: C1 decides.
#include "apps/bank/common/customer.h"

#include <array>
#include <vector>

#include "apps/bank/common/leaving.h"
#include "apps/bank/data.h"
#include "apps/kit/accounts/gone.h"
#include "apps/kit/jobs/saga.h"
#include "apps/kit/once.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

const char kCustomersSchema[] = "CREATE TABLE customers(id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT";
constexpr char kClosings[] = "closings";

struct CustomerInfoService final : CustomerInfo::CoroutineService {
  CustomerInfoService(SqlDatabase& d, Env& e)
      : db(d),
        env(e),
        closings(d, kClosings, [this](Context& ctx, apps::SagaRow& row) { return Step(ctx, row); }) {
    closings.WorkWhileServing(env);
  }

  Coroutine Get(Context& ctx, const apps::UserId& request, Customer* reply) override {
    bool read = true;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT bytes FROM customers WHERE id = ?1", {request.user()},
                     [&](const SqlRow& row) { read = reply->ParseFromString(std::string(row.Text(0))); });
    });
    reply->set_id(request.user());
    if (status.ok() && !read)
      status = absl::DataLossError(Join("customer ", request.user(), " is unreadable"));
    co_return status;
  }

  Coroutine Update(Context& ctx, const CustomerOrder& request, Customer* reply) override {
    absl::StatusOr<Customer> customer = CheckedCustomer(request);
    if (!customer.ok()) co_return customer.status();
    co_return co_await apps::WriteOnce(db, ctx, request.customer(), reply, [&](SqlSession& s) {
      bool gone = false;
      absl::Status status =
          s.Query("SELECT 1 FROM closings WHERE id = ?1 AND state IN (?2, ?3)",
                  {request.customer(), kLeft, kClosed}, [&](const SqlRow&) { gone = true; });
      if (status.ok() && gone) status = apps::GoneError();
      if (!status.ok()) return status;
      *reply = *std::move(customer);
      return s.Execute(
          "INSERT INTO customers(id, bytes) VALUES (?1, ?2) ON CONFLICT(id) DO UPDATE SET bytes = "
          "excluded.bytes",
          {request.customer(), SqlValue::Bytes(reply->SerializeAsString())});
    });
  }

  Coroutine Close(Context& ctx, const apps::UserId& request, apps::Nothing*) override {
    absl::Status status = co_await TakeLeave(ctx, request.user(), /*attempt=*/0);
    if (!status.ok()) co_return status;
    apps::SagaRow row{.id = request.user(), .owner = request.user()};
    status = co_await closings.Begin(ctx, apps::Once(), kStays, &row);
    if (status.ok()) status = co_await closings.Finish(ctx, &row);
    co_return status;
  }

  Coroutine Step(Context& ctx, apps::SagaRow& row) {
    const uint64_t attempt = uint64_t{row.round} + 1;
    absl::Status status;
    if (row.state == kLeaving) {
      status = co_await TakeLeave(ctx, row.owner, attempt);  // C1
      const bool refused = absl::IsFailedPrecondition(status) || absl::IsAborted(status);
      if (!status.ok() && !refused) co_return status;
      row.state = status.ok() ? kLeft : kStaying;  // C2
      row.bytes = std::string(Message(status));
      co_return absl::OkStatus();
    }
    if (row.state == kLeft) status = co_await Forget(ctx, row.owner, attempt);
    else status = co_await TakeBack(ctx, row.owner, attempt);
    if (!status.ok()) co_return status;
    row.open = false;
    if (row.state == kStaying) status = absl::FailedPreconditionError(row.bytes);
    row.state = row.state == kLeft ? kClosed : kStays;
    co_return status;
  }

  Coroutine TakeLeave(Context& ctx, uint64_t customer, uint64_t attempt) {
    LeaveOrder order;
    order.set_customer(customer), order.set_attempt(attempt);
    auto held = co_await WhenAllOk(
        ctx, Ask(accounts, Accounts::kLeave, order), Ask(cards, CreditCards::kLeave, order),
        Ask(loans, LoanRequests::kLeave, order), Ask(deposits, Deposits::kLeave, order),
        Ask(wealth, WealthManagement::kLeave, order));
    if (!held.ok()) co_return held.status();
    const auto& [a, c, l, d, w] = *held;
    absl::Status status = co_await AskBooks(ctx, Posting::kClose, {&a, &c, &l, &d, &w}, /*attempt=*/0);
    if (status.ok() && attempt > 0)
      status = co_await AskBooks(ctx, Posting::kClose, {&a, &c, &l, &d, &w}, attempt);
    co_return status;
  }

  Coroutine TakeBack(Context& ctx, uint64_t customer, uint64_t attempt) {
    LeaveOrder order;
    order.set_customer(customer), order.set_attempt(attempt);
    auto held =
        co_await WhenAllOk(ctx, Ask(accounts, Accounts::kStay, order), Ask(cards, CreditCards::kStay, order),
                           Ask(loans, LoanRequests::kStay, order), Ask(deposits, Deposits::kStay, order),
                           Ask(wealth, WealthManagement::kStay, order));
    if (!held.ok()) co_return held.status();
    const auto& [a, c, l, d, w] = *held;
    co_return co_await AskBooks(ctx, Posting::kReopen, {&a, &c, &l, &d, &w}, attempt);
  }

  // Asks each shard about the accounts that it has.
  Coroutine AskBooks(Context& ctx, const Method<BooksOrder, apps::Nothing>& method,
                     std::array<const Holdings*, 5> held, uint64_t attempt) {
    std::vector<BooksOrder> orders(shards.size());
    std::vector<Channel*> channels;
    for (size_t i = 0; i < shards.size(); ++i) {
      orders[i].set_attempt(attempt);
      channels.push_back(shards.At(i).channel());
    }
    for (const Holdings* const some : held) {
      for (const Holdings::One& one : some->holdings())
        *orders[shards.IndexOf(one.account())].add_accounts() = one;
    }
    absl::Status first;
    const auto all = co_await fan_out(ctx, channels, method, orders);
    for (const auto& one : all) first.Update(one.status());
    co_return first;
  }

  Coroutine Forget(Context& ctx, uint64_t customer, uint64_t attempt) {
    apps::UserId id;
    id.set_user(customer);
    LeaveOrder left;
    left.set_customer(customer), left.set_attempt(attempt);
    auto ended =
        co_await WhenAllOk(ctx, Ask(user, apps::User::kEndUser, id), Ask(contact, Contact::kForget, left));
    if (!ended.ok()) co_return ended.status();
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = s.Execute("DELETE FROM customers WHERE id = ?1", {customer});
      return status.ok() ? apps::ForgetRequests(s, customer) : status;
    });
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Get", {}},
            {"Update", {}},
            {"Close", {accounts, cards, loans, deposits, wealth, user, contact, Posting::kServiceName}}};
  }

  SqlDatabase& db;
  Env& env;
  const Accounts::Stub accounts = env.Stub<Accounts>("accounts");
  const CreditCards::Stub cards = env.Stub<CreditCards>("credit-card");
  const LoanRequests::Stub loans = env.Stub<LoanRequests>("loan-request");
  const Deposits::Stub deposits = env.Stub<Deposits>("deposits");
  const WealthManagement::Stub wealth = env.Stub<WealthManagement>("wealth-management");
  const Contact::Stub contact = env.Stub<Contact>("contact");
  const apps::User::Stub user = env.Stub<apps::User>("user");
  const Shards shards{env};
  apps::Saga closings;
};

HostedService HostedCustomerInfo() {
  return apps::HostedWithData<CustomerInfoService>(
      kApplication, "customer-info", {kCustomersSchema, apps::kOnceSchema, apps::SagaSchema(kClosings)});
}

}  // namespace curtail::bank
