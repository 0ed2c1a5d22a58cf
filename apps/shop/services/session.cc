// SPDX-License-Identifier: Apache-2.0
//
// Session: guests, who have a basket and nothing else. A token is all that a guest is, so guests who look around cost no write.
// `login` keeps the sessions that ended before their time, as the ones of users: front ends ask it.
#include <cstring>
#include <memory>
#include <string>

#include "apps/kit/accounts/tokens.h"
#include "apps/kit/data/cache.h"
#include "apps/kit/data/secrets.h"
#include "apps/kit/wall_clock.h"
#include "apps/shop/data.h"
#include "customers.curtail.h"

namespace curtail::shop {

struct GuestsService final : Guests::CoroutineService {
  GuestsService(std::unique_ptr<apps::Cache> c, apps::Tokens t, Env& e)
      : env(e), cache(std::move(c)), tokens(std::move(t)) {}

  Coroutine Open(Context&, const apps::Nothing&, apps::Session* reply) override {
    const absl::StatusOr<std::string> drawn = apps::RandomBytes(sizeof(uint64_t));
    if (!drawn.ok()) co_return drawn.status();
    uint64_t guest = 0;
    std::memcpy(&guest, drawn->data(), sizeof(guest));
    apps::SessionId session;
    session.set_user(guest >> 2 | kGuestBit);  // below 2^63, as stores have it
    session.set_expires_s(apps::NowMs() / 1000 + kGuestS);
    tokens.Open(session, kGuestS, reply);
    co_return absl::OkStatus();
  }

  // An end shows within a second.
  Coroutine Get(Context& ctx, const apps::SessionId& request, apps::Session* reply) override {
    if (!IsGuest(request.user())) co_return NoGuest();
    apps::Nothing valid;
    absl::Status status = co_await apps::ReadRecent(
        ctx, cache.get(), Join("guest.", request.user()), &valid, [&]() -> Coroutine {
          auto [checked] = co_await WhenAll(ctx, Ask(login, apps::User::kCheckSession, request));
          co_return checked.status();
        });
    if (status.ok()) tokens.Open(request, kGuestS, reply);
    co_return status;
  }
  static absl::Status NoGuest() { return absl::UnauthenticatedError("the token is not a guest's"); }

  Coroutine End(Context& ctx, const apps::SessionId& request, apps::Changed* reply) override {
    if (!IsGuest(request.user())) co_return NoGuest();
    co_return co_await call(ctx, login.channel(), apps::User::kEndSession, request, reply);
  }

  // The basket moves first: a guest's basket that was moved takes no more, so what a late request adds is not lost but refused.
  Coroutine Adopt(Context& ctx, const Adoption& request, Basket* reply) override {
    const absl::StatusOr<apps::SessionId> guest = tokens.Read(request.guest_token());
    if (!guest.ok()) co_return guest.status();
    if (!IsGuest(guest->user())) co_return NoGuest();
    BasketMerge merge;
    merge.set_to(request.user());
    merge.set_from(guest->user());
    auto [moved] = co_await WhenAll(ctx, Ask(cart, Cart::kMerge, merge));
    if (!moved.ok()) co_return moved.status();
    *reply = *std::move(moved);
    apps::Changed ended;
    co_return co_await End(ctx, *guest, &ended);
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Open", {}}, {"Get", {login}}, {"End", {login}}, {"Adopt", {cart, login}}};
  }

  Env& env;
  const std::unique_ptr<apps::Cache> cache;  // may be null
  const apps::Tokens tokens;
  const apps::User::Stub login = env.Stub<apps::User>("login");
  const Cart::Stub cart = env.Stub<Cart>("cart");
};

HostedService HostedSession() {
  return apps::HostedOnData(
      kApplication, "session", [](Env& env, const apps::DataOptions& data) -> MadeService {
        auto cache = apps::Cache::Of(env, "session-cache");
        if (!cache.ok()) return cache.status();
        auto tokens = apps::Tokens::Load(data);
        if (!tokens.ok()) return tokens.status();
        return std::make_unique<GuestsService>(*std::move(cache), *std::move(tokens), env);
      });
}

}  // namespace curtail::shop
