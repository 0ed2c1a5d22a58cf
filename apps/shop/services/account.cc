// SPDX-License-Identifier: Apache-2.0
//
// Account: what there is of a user, and its end. Orders and invoices stay, as books do.
#include <memory>
#include <string>

#include "apps/kit/accounts/departures.h"
#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/accounts/gone.h"
#include "apps/kit/accounts/id_source.h"
#include "apps/kit/data/cache.h"
#include "apps/kit/forward.h"
#include "apps/shop/data.h"
#include "customers.curtail.h"

namespace curtail::shop {

struct AccountService final : Account::CoroutineService {
  AccountService(std::unique_ptr<apps::Cache> c, Env& e)
      : env(e),
        cache(std::move(c)),
        departures(e, login, [this](Context& ctx, const apps::UserId& user) { return Forget(ctx, user); }) {}

  Coroutine Profile(Context& ctx, const apps::UserId& request, shop::Profile* reply) override {
    co_return co_await apps::ReadRecent(
        ctx, cache.get(), Join("profile.", request.user()), reply, [&]() -> Coroutine {
          auto [found] = co_await WhenAll(ctx, Ask(login, apps::User::kById, apps::IdsOf(request.user())));
          if (!found.ok()) co_return found.status();
          if (found->people().empty()) co_return apps::GoneError();
          reply->set_user(request.user());
          reply->set_name(found->people(0).name());
          reply->set_since_ms(apps::TimeOf(request.user()));
          co_return absl::OkStatus();
        });
  }

  Coroutine Delete(Context& ctx, const apps::Credentials& request, apps::Nothing*) override {
    apps::HandAddressOn(ctx);  // to `login`, which counts wrong passwords by it
    co_return co_await departures.Delete(ctx, request);
  }

  // All are waited for, so that each comes as far as it can.
  Coroutine Forget(Context& ctx, const apps::UserId& user) const {
    const auto forgotten =
        co_await WhenAll(ctx, Ask(addresses, AddressBook::kForget, user), Ask(cart, Cart::kForget, user),
                         Ask(wishes, Wishlists::kForget, user));
    co_return apps::FirstErrorOf(forgotten);
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Profile", {login}}, {"Delete", {login, addresses, cart, wishes}}};
  }

  Env& env;
  const std::unique_ptr<apps::Cache> cache;  // may be null
  const apps::User::Stub login = env.Stub<apps::User>("login");
  const AddressBook::Stub addresses = env.Stub<AddressBook>("address-book");
  const Cart::Stub cart = env.Stub<Cart>("cart");
  const Wishlists::Stub wishes = env.Stub<Wishlists>("wishlist");
  const apps::Departures departures;
};

HostedService HostedAccount() {
  return {.name = "account", .make = [](Env& env) -> MadeService {
            auto cache = apps::Cache::Of(env, "user-cache");
            if (!cache.ok()) return cache.status();
            return std::make_unique<AccountService>(*std::move(cache), env);
          }};
}

}  // namespace curtail::shop
