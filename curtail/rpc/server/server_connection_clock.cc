// SPDX-License-Identifier: Apache-2.0
//
// The times that a connection has: to begin, to end what it began, to take its replies, to be idle, to be old. One timer
// serves all of them. A call's deadline is enforced here, whatever state the call is in; a handler that keeps it itself
// comes first, by kGrace.
#include <algorithm>
#include <memory>

#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/server/server_call.h"
#include "curtail/rpc/server/server_connection.h"

namespace curtail::internal {
namespace {

// From the notice to the goodbye: a round trip, so that no call is refused.
constexpr Nanos kAgeNotice = std::chrono::milliseconds(100);

}  // namespace

void ServerConnection::StartClock() {
  accepted_ = Now();
  WakeBy(accepted_ + std::min(parts_.handshake_timeout, parts_.idle_timeout));
  if (parts_.max_age <= Nanos::zero()) return;
  // The jitter keeps connections that were made together from being made again together.
  const uint64_t random =
      (static_cast<uint64_t>(accepted_.time_since_epoch().count()) * 0x9e3779b97f4a7c15) >> 54;
  age_at_ = accepted_ + parts_.max_age * 9 / 10 + parts_.max_age / 5 * static_cast<int64_t>(random) / 1024;
  WakeBy(age_at_);
}

void ServerConnection::GrowOld(TimePoint now) {
  switch (age_) {
    case Age::kYoung:
      age_ = Age::kNoticed;
      age_at_ = now + kAgeNotice;
      return HandleGoodbye(kNotice);
    case Age::kNoticed:
      age_ = Age::kLeaving;
      age_at_ = parts_.age_grace > Nanos::zero() ? now + parts_.age_grace : TimePoint::max();
      return HandleGoodbye(kDrain);
    case Age::kLeaving:
      return Close(absl::UnavailableError("the connection has reached its greatest age"));
  }
}

std::shared_ptr<Clocked> ServerConnection::KeepAlive() {
  return {weak_from_this().lock(), static_cast<Clocked*>(this)};
}

void ServerConnection::WakeBy(TimePoint when) {
  if (when >= wake_at_) return;
  wake_at_ = when;
  clock_->Arm(*this, when);
}

void ServerConnection::Give(ServerLimit limit, const char* why) {
  parts_.limits.Reached(limit, peer_);
  Close(absl::UnavailableError(why));
}

bool ServerConnection::Late(Watch* watch, uint64_t counter, Nanos limit, TimePoint now) {
  if (watch->since == TimePoint() || watch->seen != counter) *watch = {counter, now};
  if (now - watch->since >= limit) return true;
  WakeBy(watch->since + limit);
  return false;
}

void ServerConnection::HandleClock(uint32_t bits) {
  if ((bits & kEvict) && session().open_streams() == 0) {
    return Give(ServerLimit::kConnections, "closed to make room for another connection");
  }
  if (bits & kShed) Shed();
  if (!(bits & kClock)) return;
  const TimePoint now = Now();
  wake_at_ = TimePoint::max();
  if (!session().begun()) {
    if (now - accepted_ >= parts_.handshake_timeout) {
      return Give(ServerLimit::kHandshake, "the client did not say what it wants in time");
    }
    WakeBy(accepted_ + parts_.handshake_timeout);
  }
  if (resting() || !session().input_unfinished()) {
    input_ = {};
  } else if (Late(&input_, session().inputs(), parts_.handshake_timeout, now)) {
    return Give(ServerLimit::kHeaderTime, "a header block or frame did not come whole in time");
  }
  if (!blocked()) {
    output_ = {};
  } else if (Late(&output_, written(), parts_.write_timeout, now)) {
    return Give(ServerLimit::kStalledWrite, "the client takes no bytes");
  }
  if (resting()) {
    if (now < go_on_at_) {
      WakeBy(go_on_at_);
    } else if (EndRest(); session().stalled()) {
      if (parts_.budget.over() && charged() > parts_.budget.share()) {  // L3 of server_connection_limits.cc
        Rest(0);
      } else {
        GoOn();
        if (closed()) return;
      }
    }
  }
  if (now >= age_at_) GrowOld(now);
  if (closed()) return;
  if (age_at_ != TimePoint::max()) WakeBy(age_at_);
  WakeBy(std::min(EndLateCalls(now), now + parts_.idle_timeout));
  if (session().open_streams() > 0) {
    calls_ = {};
  } else if (Late(&calls_, begun_, parts_.idle_timeout, now)) {
    parts_.limits.Reached(ServerLimit::kIdle, peer_);
    HandleGoodbye(kDrain);
  }
}

TimePoint ServerConnection::EndLateCalls(TimePoint now) {
  TimePoint first = TimePoint::max();
  if (session().open_streams() == 0) return first;
  for (const auto& call : session().OpenCalls()) {
    if (call.tag == nullptr) continue;
    const TimePoint due = static_cast<ServerCall*>(call.tag)->due();
    if (due + kGrace > now) {
      first = std::min(first, due + kGrace);
      continue;
    }
    parts_.limits.Reached(ServerLimit::kDeadline, peer_);
    session().FailCall(call.id, DeadlinePassed());
  }
  return first;
}

}  // namespace curtail::internal
