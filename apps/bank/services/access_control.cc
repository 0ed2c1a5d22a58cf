// SPDX-License-Identifier: Apache-2.0
//
// Access control: who may pay from an account, and the chain of decisions (apps/kit/hash_chain.h). A decision is kept before anybody
// acts on it, and for ever. Forgetting one is unsafe: `bank audit` looks for the decision of each payment that is booked, be it years
// later; only the services of the orders know which are; and a link that is gone looks like one that was taken away. So what enters the
// chain is bounded instead:
//  - A repetition that changes nothing, and an order for which its service has no room, add nothing: Orders::Allow(). They move no
//    money, so nobody looks for their decisions.
//  - Each round of an order adds an allowed decision, before it begins. Its service bounds the orders.
//  - A customer adds kMostUnpaid denials and grants an hour. Beyond that they are refused, and nobody acts on them. The end of a grant is
//    never refused, since each ends a grant that was counted.
#include "apps/bank/data.h"
#include "apps/kit/hash_chain.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

const char kGrantsSchema[] =
    "CREATE TABLE grants(account INTEGER, customer INTEGER, owner INTEGER NOT NULL, most INTEGER NOT NULL,"
    " PRIMARY KEY(account, customer)) STRICT, WITHOUT ROWID";
// Customers, the beginning of the last hour in which a decision after which nobody pays was kept, and how many were kept in it.
const char kUnpaidSchema[] =
    "CREATE TABLE unpaid(customer INTEGER PRIMARY KEY, begun_ms INTEGER NOT NULL, kept INTEGER NOT NULL) "
    "STRICT";
constexpr int64_t kMostWithoutStepUp = 100'000;  // cents

// Of an Act or a GrantOrder.
template <class Order>
absl::Status CheckStepUp(const Order& order) {
  if (order.cents() <= kMostWithoutStepUp || order.stepped_up()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "above 1,000.00 a session that was stepped up is needed: send a code to StepUp, and its token with "
      "this");
}

struct AccessControlService final : AccessControl::CoroutineService {
  AccessControlService(SqlDatabase& d, Env& e) : db(d), env(e) {}

  Coroutine May(Context& ctx, const Act& request, Permission* reply) override {
    absl::Status judged;  // apart, so that a refusal is kept, too
    const absl::Status kept = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      uint64_t owner = request.customer();
      int64_t most = INT64_MAX;
      const absl::Status read = s.Query("SELECT owner, most FROM grants WHERE account = ?1 AND customer = ?2",
                                        {request.account(), request.customer()}, [&](const SqlRow& row) {
                                          owner = row.Unsigned(0), most = row.Integer(1);
                                        });
      if (!read.ok()) return read;
      judged = CheckStepUp(request);
      if (request.cents() > most)
        judged = absl::PermissionDeniedError("the owner of the account allows less at once");
      reply->set_owner(owner);
      if (request.reference() == 0) return read;
      Decision decision;
      *decision.mutable_act() = request;
      const absl::Status room = judged.ok() ? absl::OkStatus() : CountUnpaid(s, request.customer());
      return room.ok() ? Keep(s, judged.ok(), &decision) : room;
    });
    co_return kept.ok() ? judged : kept;
  }

  Coroutine Grant(Context& ctx, const GrantOrder& request, apps::Nothing*) override {
    if (request.cents() < 0) co_return absl::InvalidArgumentError("cents are 0 or more");
    if (request.owner() == request.customer())
      co_return absl::InvalidArgumentError("the account is the customer's own");
    BalanceQuery query;
    query.set_account(request.account());
    query.set_owner(request.owner());
    auto [owned] = co_await WhenAll(ctx, Ask(shards.Of(request.account()), Posting::kBalance, query));
    if (!owned.ok()) co_return owned.status();
    const absl::Status judged = CheckStepUp(request);
    const absl::Status kept = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      if (request.cents() == 0) {
        status = s.Execute("DELETE FROM grants WHERE account = ?1 AND customer = ?2",
                           {request.account(), request.customer()});
        if (status.ok() && s.changes() == 0) return status;
      } else {
        status = CountUnpaid(s, request.owner());
        if (status.ok() && judged.ok())
          status = s.Execute(
              "INSERT INTO grants(account, customer, owner, most) VALUES (?1, ?2, ?3, ?4)"
              " ON CONFLICT(account, customer) DO UPDATE SET most = excluded.most",
              {request.account(), request.customer(), request.owner(), request.cents()});
      }
      if (!status.ok()) return status;
      Decision decision;
      *decision.mutable_grant() = request;
      return Keep(s, judged.ok(), &decision);
    });
    co_return kept.ok() ? judged : kept;
  }

  // Counts a decision after which nobody pays. An hour that begins later than now is of a clock that was set back.
  static absl::Status CountUnpaid(SqlSession& s, uint64_t customer) {
    const int64_t now = apps::NowMs();
    uint64_t kept = 0;
    absl::Status status = s.Query(
        "INSERT INTO unpaid(customer, begun_ms, kept) VALUES (?1, ?2, 1) ON CONFLICT(customer) DO UPDATE SET"
        " begun_ms = CASE WHEN unpaid.begun_ms BETWEEN ?3 AND ?2 THEN unpaid.begun_ms ELSE ?2 END,"
        " kept = CASE WHEN unpaid.begun_ms BETWEEN ?3 AND ?2 THEN unpaid.kept + 1 ELSE 1 END RETURNING kept",
        {customer, now, now - kAnHourMs}, [&](const SqlRow& row) { kept = row.Unsigned(0); });
    if (!status.ok() || kept <= kMostUnpaid) return status;
    return absl::ResourceExhaustedError(
        Join("the bank has kept ", kMostUnpaid,
             " denials and grants of the customer within an hour; wait an hour"));
  }

  static absl::Status Keep(SqlSession& s, bool allowed, Decision* decision) {
    decision->set_allowed(allowed);
    decision->set_at_ms(apps::NowMs());
    return apps::HashChain::Append(s, decision->SerializeAsString());
  }

  Coroutine Verify(Context& ctx, const apps::Nothing&, ChainHead* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      apps::HashChain::Head head;
      const absl::Status status =
          apps::HashChain::Verify(s, [](std::string_view) { return absl::OkStatus(); }, &head);
      reply->set_links(head.links);
      reply->set_hash(head.hash);
      return status;
    });
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"May", {}}, {"Grant", {Posting::kServiceName}}, {"Verify", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const Shards shards{env};
};

HostedService HostedAccessControl() {
  return apps::HostedWithData<AccessControlService>(kApplication, "access-control",
                                                    {kGrantsSchema, apps::HashChain::kSchema, kUnpaidSchema});
}

}  // namespace curtail::bank
