// SPDX-License-Identifier: Apache-2.0
//
// Access control: who may pay from an account, and the chain of all decisions (apps/kit/hash_chain.h). A decision is kept before anybody
// acts on it.
#include "apps/bank/data.h"
#include "apps/kit/hash_chain.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

const char kGrantsSchema[] =
    "CREATE TABLE grants(account INTEGER, customer INTEGER, owner INTEGER NOT NULL, most INTEGER NOT NULL,"
    " PRIMARY KEY(account, customer)) STRICT, WITHOUT ROWID";
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
      Decision decision;
      *decision.mutable_act() = request;
      return Keep(s, judged.ok(), &decision);
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
      const absl::Status status =
          !judged.ok() ? absl::OkStatus()
          : request.cents() == 0
              ? s.Execute("DELETE FROM grants WHERE account = ?1 AND customer = ?2",
                          {request.account(), request.customer()})
              : s.Execute(
                    "INSERT INTO grants(account, customer, owner, most) VALUES (?1, ?2, ?3, ?4)"
                    " ON CONFLICT(account, customer) DO UPDATE SET most = excluded.most",
                    {request.account(), request.customer(), request.owner(), request.cents()});
      if (!status.ok()) return status;
      Decision decision;
      *decision.mutable_grant() = request;
      return Keep(s, judged.ok(), &decision);
    });
    co_return kept.ok() ? judged : kept;
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
                                                    {kGrantsSchema, apps::HashChain::kSchema});
}

}  // namespace curtail::bank
