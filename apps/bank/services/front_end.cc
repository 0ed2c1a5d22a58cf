// SPDX-License-Identifier: Apache-2.0
//
// Front end: what clients call. Finds out who calls, and hands on.
#include "apps/bank/data.h"
#include "apps/kit/accounts/sessions.h"
#include "apps/kit/for_clients.h"
#include "apps/kit/forward.h"
#include "apps/kit/page.h"
#include "bank.curtail.h"
#include "curtail/gateway/page/page.h"
#include "curtail/rpc/when_all.h"
#include "page_files.h"

namespace curtail::bank {

using apps::User;

struct FrontEndService final : Bank::CoroutineService {
  FrontEndService(apps::Sessions s, Env& e) : env(e), sessions(std::move(s)) {}

  Coroutine Register(Context& ctx, const apps::Credentials& request, apps::Session* reply) override {
    return sessions.Register(ctx, request, reply);
  }
  Coroutine Login(Context& ctx, const apps::Credentials& request, apps::Session* reply) override {
    return apps::Forward(ctx, user, User::kLogin, request, reply);
  }
  Coroutine Logout(Context& ctx, const apps::TokenRequest& request, apps::Changed* reply) override {
    return sessions.End(ctx, request.token(), reply);
  }

  Coroutine OpenAccount(Context& ctx, const apps::TokenRequest& request, Account* reply) override {
    return apps::ForwardFor(ctx, CallerOf(ctx, request), accounts, Accounts::kOpen, reply,
                            [](apps::UserId& of, uint64_t caller) { of.set_user(caller); });
  }
  Coroutine ListAccounts(Context& ctx, const apps::TokenRequest& request, AccountList* reply) override {
    return apps::ForwardFor(ctx, CallerOf(ctx, request), accounts, Accounts::kList, reply,
                            [](apps::UserId& of, uint64_t caller) { of.set_user(caller); });
  }
  Coroutine GetBalance(Context& ctx, const BalanceRequest& request, Balance* reply) override {
    const absl::StatusOr<uint64_t> caller = co_await CallerOf(ctx, request);
    if (!caller.ok()) co_return caller.status();
    BalanceQuery query = QueryOf(*caller, request.account());
    query.set_at_least(request.at_least());
    co_return co_await apps::Forward(ctx, shards.Of(request.account()), Posting::kBalance, query, reply);
  }

  Coroutine Pay(Context& ctx, const PayRequest& request, Payment* reply) override {
    return apps::ForwardFor(ctx, CallerOf(ctx, request), payments, Payments::kPay, reply,
                            [&](PaymentOrder& order, uint64_t caller) {
                              order.set_customer(caller);
                              order.set_from(request.from());
                              order.set_iban(request.iban());
                              order.set_cents(request.cents());
                              order.set_text(request.text());
                            });
  }
  Coroutine GetPayment(Context& ctx, const PaymentRequest& request, Payment* reply) override {
    return apps::ForwardFor(ctx, CallerOf(ctx, request), payments, Payments::kStatus, reply,
                            [&](PaymentQuery& query, uint64_t caller) {
                              query.set_customer(caller);
                              query.set_id(request.id());
                            });
  }

  Coroutine ListActivity(Context& ctx, const ActivityRequest& request, Movements* reply) override {
    const absl::StatusOr<uint64_t> caller = co_await CallerOf(ctx, request);
    if (!caller.ok()) co_return caller.status();
    ActivityQuery page;
    page.set_account(request.account());
    page.set_before(request.before());
    page.set_limit(apps::LimitOf(request.limit()));
    auto [owned, listed] = co_await WhenAll(
        ctx, Ask(shards.Of(request.account()), Posting::kBalance, QueryOf(*caller, request.account())),
        Ask(activity, Activity::kList, page));
    if (!owned.ok()) co_return owned.status();
    if (!listed.ok()) co_return listed.status();
    apps::Ids others;
    for (const Entry& entry : listed->entries()) others.add_ids(entry.counterpart());
    auto [named] = co_await WhenAll(ctx, Ask(accounts, Accounts::kById, others));
    if (!named.ok()) co_return named.status();
    Show(*listed, *named, reply);
    if (listed->entries_size() == static_cast<int>(page.limit()))
      reply->set_next(listed->entries().rbegin()->version());
    co_return absl::OkStatus();
  }

  static void Show(const EntryList& entries, const AccountList& named, Movements* reply) {
    for (const Entry& entry : entries.entries()) {
      Movement* const movement = reply->add_movements();
      movement->set_version(entry.version());
      movement->set_cents(entry.cents());
      movement->set_balance_cents(entry.balance());
      movement->set_text(entry.text());
      movement->set_booked_ms(entry.booked_ms());
      for (const Account& account : named.accounts()) {
        if (account.id() == entry.counterpart()) movement->set_iban(account.iban());
      }
    }
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Register", {user}},
            {"Login", {user}},
            {"Logout", {user}},
            {"OpenAccount", {user, accounts}},
            {"ListAccounts", {user, accounts}},
            {"GetBalance", {user, Posting::kServiceName}},
            {"Pay", {user, payments}},
            {"GetPayment", {user, payments}},
            {"ListActivity", {user, Posting::kServiceName, activity, accounts}}};
  }

  Co<absl::StatusOr<uint64_t>> CallerOf(Context& ctx, const auto& request) const {
    return sessions.CallerOf(ctx, request.token());
  }
  static BalanceQuery QueryOf(uint64_t owner, uint64_t account) {
    BalanceQuery query;
    query.set_owner(owner);
    query.set_account(account);
    return query;
  }

  Env& env;
  const apps::Sessions sessions;
  const User::Stub user = env.Stub<User>("user");
  const Accounts::Stub accounts = env.Stub<Accounts>("accounts");
  const Shards shards{env};
  const Payments::Stub payments = env.Stub<Payments>("payments");
  const Activity::Stub activity = env.Stub<Activity>("activity");
};

HostedService HostedFrontEnd() {
  auto data = std::make_shared<Data>();
  return {.name = "front-end",
          .flags = [data](Flags& flags) { apps::AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            auto sessions = apps::Sessions::Load(*data, env.Stub<User>("user"));
            if (!sessions.ok()) return sessions.status();
            env.AlsoServe(gateway::MakePage(PageFiles()));
            return apps::ForClients(std::make_unique<FrontEndService>(*std::move(sessions), env));
          }};
}

}  // namespace curtail::bank
