// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/departures.h"

#include <chrono>
#include <utility>

#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/run_here.h"
#include "curtail/rpc/when_all.h"

namespace curtail::apps {
namespace {

constexpr uint32_t kAccountsAtOnce = 100;
// Of an attempt of the finisher.
constexpr Nanos kAttemptTime = std::chrono::seconds(5);

}  // namespace

Departures::Departures(Env& env, User::Stub user, Forget forget)
    : user_(std::move(user)),
      forget_(std::move(forget)),
      finisher_([this](absl::FunctionRef<bool()> stopping) { return FinishAll(stopping); }) {
  finisher_.WorkWhileServing(env);
}

Coroutine Departures::Delete(Context& ctx, const Credentials& credentials) const {
  auto [closed] = co_await WhenAll(ctx, Ask(user_, User::kClose, credentials));
  if (!closed.ok()) co_return closed.status();
  absl::Status deleted = co_await Finish(ctx, *closed);
  if (deleted.ok()) co_return deleted;
  co_return ForClients(
      absl::Status(deleted.code(),
                   "the account is closed, but parts of it are left; they go as soon as all services"
                   " answer, or call again with the same name and password"));
}

Coroutine Departures::Finish(Context& ctx, const UserId& user) const {
  absl::Status forgotten = co_await forget_(ctx, user);
  if (!forgotten.ok()) co_return forgotten;
  auto [removed] = co_await WhenAll(ctx, Ask(user_, User::kRemove, user));
  co_return removed.status();
}

absl::Status Departures::FinishAll(absl::FunctionRef<bool()> stopping) const {
  absl::Status status;
  IdPage page;
  page.set_limit(kAccountsAtOnce);
  Ids closed;
  do {
    closed.Clear();
    Context ctx(kAttemptTime);
    if (absl::Status listed = user_.ListClosed(ctx, page, &closed); !listed.ok()) return listed;
    for (const uint64_t id : closed.ids()) {
      if (stopping()) return status;
      Context one(kAttemptTime);
      UserId user;
      user.set_user(id);
      status.Update(RunHere(Finish(one, user)));
      page.set_after(id);
    }
  } while (!closed.ids().empty());
  return status;
}

}  // namespace curtail::apps
