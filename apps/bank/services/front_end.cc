// SPDX-License-Identifier: Apache-2.0
//
// Front end: what clients call. bank.proto says who may call, and what other services answer.
#include "apps/bank/data.h"
#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/accounts/sessions.h"
#include "bank.curtail.h"
#include "curtail/gateway/page/page.h"
#include "curtail/rpc/when_all.h"
#include "page_files.h"

namespace curtail::bank {

using apps::User;

struct FrontEndService final : Bank::CoroutineService {
  FrontEndService(const apps::Sessions& s, Env& e) : env(e), sessions(s) {}

  Coroutine Register(Context& ctx, const apps::Credentials& request, apps::Session* reply) override {
    return sessions.Register(ctx, request, reply);
  }
  Coroutine Logout(Context& ctx, const apps::TokenRequest& request, apps::Changed* reply) override {
    return sessions.End(ctx, request.token(), reply);
  }

  Coroutine StepUp(Context& ctx, const apps::CodeRequest& request, apps::Session* reply) override {
    return sessions.StepUp(ctx, request, reply);
  }

  Coroutine CloseCustomer(Context& ctx, const apps::TokenRequest&, apps::Changed* reply) override {
    apps::UserId caller;
    caller.set_user(apps::CallerOf(ctx));
    auto [closed] = co_await WhenAll(ctx, Ask(customers, CustomerInfo::kClose, caller));
    sessions.Forget(caller.user());  // after an error, too
    reply->set_changed(closed.ok());
    co_return closed.status();
  }

  Coroutine GetBalance(Context& ctx, const BalanceRequest& request, Balance* reply) override {
    BalanceQuery query = QueryOf(apps::CallerOf(ctx), request.account());
    query.set_at_least(request.at_least());
    co_return co_await call(ctx, shards.Of(request.account()).channel(), Posting::kBalance, query, reply);
  }

  Coroutine ListActivity(Context& ctx, const ActivityRequest& request, Movements* reply) override {
    ActivityQuery page;
    page.set_account(request.account());
    page.set_before(request.before());
    page.set_limit(request.limit());
    *page.mutable_filter() = request.filter();
    auto [owned, listed] = co_await WhenAll(
        ctx,
        Ask(shards.Of(request.account()), Posting::kBalance, QueryOf(apps::CallerOf(ctx), request.account())),
        Ask(activity, Activity::kList, page));
    if (!owned.ok()) co_return owned.status();
    if (!listed.ok()) co_return listed.status();
    *reply = *std::move(listed);
    co_return absl::OkStatus();
  }

  Coroutine ExportActivity(Context& ctx, const ExportRequest& request,
                           AsyncStreamWriter<google::api::HttpBody>& stream) override {
    auto [owned] = co_await WhenAll(ctx, Ask(shards.Of(request.account()), Posting::kBalance,
                                             QueryOf(apps::CallerOf(ctx), request.account())));
    if (!owned.ok()) co_return owned.status();
    ActivityQuery query;
    query.set_account(request.account());
    *query.mutable_filter() = request.filter();
    do {
      auto [page] = co_await WhenAll(ctx, Ask(activity, Activity::kExport, query));
      if (!page.ok()) co_return page.status();
      if (!co_await stream.Write(page->part())) co_return stream.status();
      query.set_before(page->next());
    } while (query.before() != 0);
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Register", {User::kServiceName}},
            {"Logout", {User::kServiceName}},
            {"StepUp", {User::kServiceName}},
            {"CloseCustomer", {customers}},
            {"GetBalance", {Posting::kServiceName}},
            {"ListActivity", {Posting::kServiceName, activity}},
            {"ExportActivity", {Posting::kServiceName, activity}}};
  }

  static BalanceQuery QueryOf(uint64_t owner, uint64_t account) {
    BalanceQuery query;
    query.set_owner(owner);
    query.set_account(account);
    return query;
  }

  Env& env;
  const apps::Sessions& sessions;
  const Shards shards{env};
  const CustomerInfo::Stub customers = env.Stub<CustomerInfo>("customer-info");
  const Activity::Stub activity = env.Stub<Activity>("activity");
};

HostedService HostedFrontEnd() {
  return apps::HostedOnData(
      kApplication, "front-end", [](Env& env, const apps::DataOptions& data) -> MadeService {
        auto cache = apps::Cache::Of(env, "session-cache");
        if (!cache.ok()) return cache.status();
        auto sessions = apps::Sessions::Load(data, env.Stub<User>("user"), *std::move(cache));
        if (!sessions.ok()) return sessions.status();
        env.AlsoServe(gateway::MakePage(PageFiles()));
        const apps::Sessions& kept = env.Keep(std::make_unique<apps::Sessions>(*std::move(sessions)));
        return apps::ForClients(std::make_unique<FrontEndService>(kept, env), kept, apps::PeersOf(env));
      });
}

}  // namespace curtail::bank
