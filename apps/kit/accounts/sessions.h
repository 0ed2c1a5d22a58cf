// SPDX-License-Identifier: Apache-2.0
//
// sessions.h - the user whose session a call belongs to, by its token, and the users that it names.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "access.pb.h"
#include "accounts.curtail.h"
#include "apps/kit/accounts/tokens.h"
#include "apps/kit/data/cache.h"
#include "apps/kit/data/data.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/coroutine.h"

namespace curtail::apps {

// Returns the user who makes the call of `ctx`, which Sessions::Admit() has found; 0: a guest.
uint64_t CallerOf(const Context& ctx);
// True if the user has given a code within five minutes: the token is one of User::StepUp().
bool SteppedUp(const Context& ctx);

// A CheckedSessions remembers for a second which sessions `user` has not ended: of the users that share a place, the session
// that was checked last. Thread-safe.
class CheckedSessions {
 public:
  static constexpr Nanos kKept = std::chrono::seconds(1);

  explicit CheckedSessions(const TimeSource& time = RealTime()) : time_(time) {}

  TimePoint Now() const { return time_.Now(); }
  bool Has(const SessionId& session) const;
  // `user`, which was asked at `asked`, has not ended the session. False: no effect, as Forget() or another session of the place
  // came since.
  bool Remember(const SessionId& session, TimePoint asked);
  // `user` may have ended sessions of this user.
  void Forget(uint64_t user);

 private:
  using Key = std::tuple<uint64_t, uint64_t, uint64_t>;
  struct Place {
    Key session;
    TimePoint asked = TimePoint::min();  // or forgotten
  };
  // A prime: ids of users begin with a time, and end with a machine and a counter.
  static constexpr size_t kPlaces = 4093;

  static Key KeyOf(const SessionId& id) { return {id.user(), id.epoch(), id.number()}; }

  const TimeSource& time_;
  mutable Mutex mu_;
  std::vector<Place> places_ CURTAIL_GUARDED_BY(mu_) = std::vector<Place>(kPlaces);
};

// A Sessions knows the secret by which tokens are signed, and asks `user` whether a session was ended, unless it asked less than
// CheckedSessions::kKept ago. With a cache, all front ends that share it ask once in that time, as far as their clocks agree. Thread-safe. What is passed to it outlives the call.
class Sessions {
 public:
  // Of tokens of IssuerOf() with TokenSecret(), whose errors it has. `cache` may be null.
  [[nodiscard]] static absl::StatusOr<Sessions> Load(const DataOptions& data, User::Stub user,
                                                     std::unique_ptr<Cache> cache = nullptr);

  // Finds the caller by its token, for CallerOf(). The token is `given`, or else the metadata "authorization: Bearer TOKEN".
  // Errors: UNAUTHENTICATED if `access` does not admit the caller; the errors of `user`.
  Coroutine Admit(Context& ctx, Access access, std::string_view given) const;
  // As User::Register(), once for each name that its client gives the request.
  Coroutine Register(Context& ctx, const Credentials& request, Session* reply) const;
  // Ends the session of the token. Errors: UNAUTHENTICATED without a valid token; the errors of `user`.
  Coroutine End(Context& ctx, std::string_view given, Changed* reply) const;
  // As User::StepUp(), for the session of the token. Errors: UNAUTHENTICATED without a valid token.
  Coroutine StepUp(Context& ctx, const CodeRequest& request, Session* reply) const;
  // As User::ChangePassword().
  Coroutine ChangePassword(Context& ctx, const PasswordChange& request, Session* reply) const;

  // Asks `user` again at the next call of this user, whose sessions may have been ended by another way than these.
  void Forget(uint64_t user) const { checked_->Forget(user); }

  // The user of that name. Errors: NOT_FOUND; the errors of `user`.
  Co<absl::StatusOr<uint64_t>> Named(Context& ctx, const std::string& name) const;

 private:
  Sessions(Tokens tokens, User::Stub user, std::unique_ptr<Cache> cache)
      : tokens_(std::move(tokens)), user_(std::move(user)), cache_(std::move(cache)) {}
  // The session that the token names, which may have been ended. Errors: UNAUTHENTICATED.
  absl::StatusOr<SessionId> Read(const Context& ctx, std::string_view given) const;
  // UNAUTHENTICATED: the session was ended. The errors of `user`.
  Coroutine Check(Context& ctx, const SessionId& session) const;

  Tokens tokens_;
  User::Stub user_;
  std::unique_ptr<Cache>
      cache_;  // when `user` last answered, in milliseconds since 1970, by session; may be null
  std::unique_ptr<CheckedSessions> checked_ = std::make_unique<CheckedSessions>();
};

}  // namespace curtail::apps
