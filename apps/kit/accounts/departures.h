// SPDX-License-Identifier: Apache-2.0
//
// departures.h - the end of a user's account, with all that services keep of it.
//
//  1  `user` closes the account, in one write. No other method finds it from now on, but its credentials still do.
//  2  All services forget the user, and refuse what it did before and comes late (gone.h).
//  3  `user` removes the account. Now the name is free.
//
// Each step may be repeated, so a deletion that ended half way goes on when its user calls again, and by itself.
#pragma once

#include <functional>

#include "accounts.curtail.h"
#include "apps/kit/jobs/finisher.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"

namespace curtail::apps {

// A Departures deletes users. A deletion that failed half way is finished by a thread. Thread-safe.
class Departures {
 public:
  // Step 2. May be repeated, and run on any thread.
  using Forget = std::function<Coroutine(Context& ctx, const UserId& user)>;

  Departures(Env& env, User::Stub user, Forget forget);

  // Deletes the user of these credentials. Errors: as User::Login() and `forget`. The message of `forget` says that
  // parts are left, which go once all services answer.
  Coroutine Delete(Context& ctx, const Credentials& credentials) const;

 private:
  Coroutine Finish(Context& ctx, const UserId& user) const;
  // A round of the finisher.
  absl::Status FinishAll(absl::FunctionRef<bool()> stopping) const;

  const User::Stub user_;
  const Forget forget_;
  Finisher finisher_;
};

}  // namespace curtail::apps
