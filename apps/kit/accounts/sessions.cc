// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/sessions.h"

#include <chrono>
#include <optional>
#include <utility>

#include "apps/kit/accounts/gone.h"
#include "apps/kit/digits.h"
#include "apps/kit/once.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/when_all.h"

namespace curtail::apps {
namespace {

constexpr char kCaller[] = "curtail.apps.caller", kSteppedUp[] = "curtail.apps.stepped-up";

std::string_view TokenOf(const Context& ctx, std::string_view given) {
  if (!given.empty()) return given;
  const std::string_view header = ctx.metadata().Find("authorization").value_or("");
  constexpr std::string_view kBearer = "Bearer ";
  return header.starts_with(kBearer) ? header.substr(kBearer.size()) : "";
}

}  // namespace

uint64_t CallerOf(const Context& ctx) {
  return ParseDigits(ctx.properties().Find(kCaller).value_or("")).value_or(0);
}

bool SteppedUp(const Context& ctx) { return ctx.properties().Find(kSteppedUp).has_value(); }

bool CheckedSessions::Has(const SessionId& session) const {
  const MutexLock lock(mu_);
  const Place& place = places_[session.user() % kPlaces];
  return place.session == KeyOf(session) && Now() < place.asked + kKept;
}

bool CheckedSessions::Remember(const SessionId& session, TimePoint asked) {
  const MutexLock lock(mu_);
  Place& place = places_[session.user() % kPlaces];
  if (asked <= place.asked) return false;
  place = {KeyOf(session), asked};
  return true;
}

void CheckedSessions::Forget(uint64_t user) {
  const MutexLock lock(mu_);
  places_[user % kPlaces] = {{}, Now()};
}

absl::StatusOr<Sessions> Sessions::Load(const DataOptions& data, User::Stub user,
                                        std::unique_ptr<Cache> cache) {
  auto tokens = Tokens::Load(data);
  if (!tokens.ok()) return tokens.status();
  return Sessions(*std::move(tokens), std::move(user), std::move(cache));
}

absl::StatusOr<SessionId> Sessions::Read(const Context& ctx, std::string_view given) const {
  return tokens_.Read(TokenOf(ctx, given));
}

Coroutine Sessions::Admit(Context& ctx, Access access, std::string_view given) const {
  if (access == PUBLIC || (access == GUEST && TokenOf(ctx, given).empty())) co_return absl::OkStatus();
  const absl::StatusOr<SessionId> session = Read(ctx, given);
  if (!session.ok()) co_return session.status();
  if (!checked_->Has(*session)) {
    const absl::Status valid = co_await Check(ctx, *session);
    if (!valid.ok()) co_return valid;
  }
  if (access == PRESENT_USER) {
    Ids id;
    id.add_ids(session->user());
    auto [found] = co_await WhenAll(ctx, Ask(user_, User::kById, id));
    if (!found.ok()) co_return found.status();
    if (found->people().empty()) co_return GoneError();
  }
  ctx.AddProperty(kCaller, Join(session->user()));
  if (session->stepped_up()) ctx.AddProperty(kSteppedUp, "");
  co_return absl::OkStatus();
}

Coroutine Sessions::Check(Context& ctx, const SessionId& session) const {
  const TimePoint asked = checked_->Now();
  const int64_t asked_ms = NowMs();
  const std::string key = Join("session.", session.user(), ".", session.epoch(), ".", session.number());
  if (cache_ != nullptr) {
    std::vector<std::optional<std::string>> found;
    const std::vector<std::string> keys = {key};
    (co_await cache_->Get(ctx, keys, &found)).IgnoreError();
    const auto answered_ms = static_cast<int64_t>(ParseDigits(found[0].value_or("")).value_or(0));
    // A later time than this one's comes from a clock that was ahead, and says nothing.
    const Nanos age = std::chrono::milliseconds(asked_ms + 1 - answered_ms);
    if (answered_ms <= asked_ms && age < CheckedSessions::kKept && checked_->Remember(session, asked - age))
      co_return absl::OkStatus();
  }
  auto [checked] = co_await WhenAll(ctx, Ask(user_, User::kCheckSession, session));
  if (!checked.ok()) co_return checked.status();
  checked_->Remember(session, asked);
  if (cache_ != nullptr) (co_await cache_->Put(ctx, key, Join(asked_ms))).IgnoreError();
  co_return absl::OkStatus();
}

Coroutine Sessions::Register(Context& ctx, const Credentials& request, Session* reply) const {
  Credentials content = request;
  content.clear_password();  // a digest of it would be quicker to try than its hash
  absl::Status named = NameRequest(ctx, User::kRegister.path, content);
  if (!named.ok()) co_return named;
  co_return co_await call(ctx, user_.channel(), User::kRegister, request, reply);
}

Coroutine Sessions::End(Context& ctx, std::string_view given, Changed* reply) const {
  const absl::StatusOr<SessionId> session = Read(ctx, given);
  if (!session.ok()) co_return session.status();
  const absl::Status status = co_await call(ctx, user_.channel(), User::kEndSession, *session, reply);
  checked_->Forget(session->user());  // after an error, too: `user` may have ended it
  co_return status;
}

Coroutine Sessions::StepUp(Context& ctx, const CodeRequest& request, Session* reply) const {
  absl::StatusOr<SessionId> session = Read(ctx, request.token());
  if (!session.ok()) co_return session.status();
  CodeProof proof;
  *proof.mutable_session() = *std::move(session);
  proof.set_code(request.code());
  co_return co_await call(ctx, user_.channel(), User::kStepUp, proof, reply);
}

Coroutine Sessions::ChangePassword(Context& ctx, const PasswordChange& request, Session* reply) const {
  const absl::Status status = co_await call(ctx, user_.channel(), User::kChangePassword, request, reply);
  if (status.ok()) checked_->Forget(reply->user());
  co_return status;
}

Co<absl::StatusOr<uint64_t>> Sessions::Named(Context& ctx, const std::string& name) const {
  Names names;
  names.add_names(name);
  auto [found] = co_await WhenAll(ctx, Ask(user_, User::kByName, names));
  if (!found.ok()) co_return found.status();
  if (found->people().empty()) co_return absl::NotFoundError("there is no user of that name");
  co_return found->people(0).id();
}

}  // namespace curtail::apps
