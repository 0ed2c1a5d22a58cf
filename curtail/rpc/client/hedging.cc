// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The attempts at a hedged call are the call's own Member, and more of them. The fan-out counts all attempts
// (pending_), so it stays until the last has ended, those that lost included; these end without a round trip.
//
//  H1  The thread that sends the round, the one that waits or has the timer, and each that ends an attempt send those
//      that are due, one at a time, while the budget of retries lasts. Each has a part of pending_: if that has reached
//      zero, the round is over.
//  H2  An attempt decides its call with OK, with a status that the policy does not call non-fatal, or with an error after
//      the head of its reply. The first to do so wins and the others are cancelled. An attempt that fails otherwise makes
//      the next one due at once, or when its server said.
//  H3  A thread takes an attempt under the call's mutex, finds a connection without it, and begins the attempt under the
//      mutex again, unless the call is over by then. So a thread that ends the call cancels all that were begun, and no
//      cancellation is ahead of its call.
//  H4  No connection is kicked or asked for under the mutex: that may end attempts on this thread.
//  H5  When all attempts of the round have ended, the winner's outcome becomes the call's, or that of the attempt that
//      failed last, which may be made again as other calls are (Attempts::Again()).
//
// An attempt goes to a server that has none at this call, if the balancer names one within some choices; pick_first and
// ring_hash do not. An interceptor sees each round, and not each attempt.
#include "curtail/rpc/client/hedging.h"

#include <algorithm>
#include <array>
#include <utility>

#include "curtail/rpc/serialize.h"
#include "google/protobuf/message_lite.h"

namespace curtail::internal {
namespace {

// Another look at attempts that may not be sent yet.
constexpr Nanos kSoonAgain = std::chrono::milliseconds(1);

// `from` for another attempt, `before` attempts after the first.
Metadata ForAttempt(const Metadata& from, int before) {
  Metadata metadata;
  for (const auto& [key, value] : from) {
    if (key != kAttemptsKey) metadata.AddLowerCase(key, value);
  }
  metadata.AddLowerCase(kAttemptsKey, std::to_string(before));
  return metadata;
}

}  // namespace

void Fanout::BeginHedges(const std::shared_ptr<Poller>& poller) {
  if (first_) {
    for (size_t i = 0; i < size(); ++i) {
      const MethodConfig* const method = members_[i].attempts.method();
      members_[i].hedge = nullptr;
      if (method == nullptr || !method->hedging) continue;
      if (hedges_ == nullptr) hedges_ = std::make_unique<Hedges>();
      members_[i].hedge = &hedges_->calls.emplace_back(i, *method->hedging);
    }
  }
  if (hedges_ == nullptr) return;
  hedges_->poller = poller;
  for (HedgedCall& call : hedges_->calls) {
    MutexLock lock(call.mu);
    for (size_t at = 0; at < call.taken; ++at) {
      call.extra[at].Reset();
      call.extra[at].connection.reset();
      call.extra[at].cancelled.store(false, std::memory_order_relaxed);
    }
    call.begun = call.over = false;
    call.left = call.policy.max_attempts - 1 - members_[call.index].attempts.failed();
    call.taken = 0;
    call.sent = 0;
    call.open = 1;
    call.next = now_ + call.policy.delay;
    call.winner = call.last = nullptr;
  }
}

void Fanout::StartHedges() {
  for (HedgedCall& call : hedges_->calls) {
    {
      MutexLock lock(call.mu);
      call.begun = true;
    }
    SendDueHedges(call, true);
  }
}

Deadline Fanout::SendDueHedges(HedgedCall& call, bool may) {
  if (ConnectionOf(call.index) == nullptr) return Deadline::Infinite();
  while (true) {
    const TimePoint now = Now();
    size_t at = 0;
    {
      MutexLock lock(call.mu);
      if (call.next <= now && !members_[call.index].attempts.MayHedge()) call.left = 0;
      if (call.over || call.left <= 0) return Deadline::Infinite();
      if (call.next > now) return Deadline::At(call.next);
      if (!may || !call.begun) return Deadline::In(kSoonAgain);
      --call.left;
      at = call.taken++;
      call.next = now + call.policy.delay;
    }
    SendHedge(call, at, now);
  }
}

void Fanout::SendHedge(HedgedCall& call, size_t at, TimePoint now) {
  const Member& own = members_[call.index];
  Member& attempt = call.extra[at];
  attempt.fanout = this;
  attempt.hedge = &call;
  attempt.head = own.head;
  attempt.head.metadata = ForAttempt(own.head.metadata, own.attempts.failed() + static_cast<int>(at) + 1);
  attempt.head.timeout.reset();
  attempt.SetTimeout(DeadlineOf(own), now);
  if (!Serialize(*batch_.requests[call.index], &attempt.message)) return;
  std::shared_ptr<ClientConnection> connection = ConnectHedge(call, attempt, now);
  if (connection == nullptr) return;
  {
    MutexLock lock(call.mu);  // H3
    if (call.over) return;
    attempt.connection = std::move(connection);
    pending_.fetch_add(1, std::memory_order_relaxed);
    attempt.connection->Begin(attempt);
    ++call.sent;
    ++call.open;
  }
  attempt.connection->Kick(Connection::kPosted, nullptr);
}

std::shared_ptr<ClientConnection> Fanout::ConnectHedge(HedgedCall& call, const Member& attempt,
                                                       TimePoint now) {
  std::array<const SharedBackend*, kMostAttempts> used{};
  size_t count = 0;
  used[count++] = ConnectionOf(call.index)->server();
  {
    MutexLock lock(call.mu);
    for (size_t i = 0; i < call.taken; ++i) {
      if (call.extra[i].connection != nullptr) used[count++] = call.extra[i].connection->server();
    }
  }
  auto connection = batch_.channels[call.index]->impl().Acquire(hedges_->poller, now, attempt.head.metadata,
                                                                UsedServers(used.data(), count));
  return connection.ok() ? *std::move(connection) : nullptr;
}

void Fanout::StopHedges(HedgedCall& call, const Member* winner) {
  std::array<ClientConnection*, kMostAttempts> kick{};
  size_t count = 0;
  {
    MutexLock lock(call.mu);
    call.over = true;
    for (size_t i = 0; i < call.taken; ++i) {
      Member& attempt = call.extra[i];
      if (&attempt == winner || attempt.connection == nullptr) continue;
      if (PostCancel(attempt)) kick[count++] = attempt.connection.get();
    }
  }
  Member& own = members_[call.index];
  if (winner != nullptr && winner != &own && PostCancel(own)) kick[count++] = own.connection.get();
  for (size_t i = 0; i < count; ++i) kick[i]->Kick(Connection::kPosted, nullptr);
}

void Fanout::HedgeEnded(Member& attempt) {
  HedgedCall& call = *attempt.hedge;
  if (ctx_.observed() != nullptr) attempt.answered = ctx_.observed()->AnsweredAt();
  const bool cut = attempt.cancelled.load(std::memory_order_relaxed);
  const bool ok = attempt.status.ok();
  const bool goes_on =
      attempt.unprocessed || (!attempt.committed && call.policy.IsNonFatal(attempt.status.code()));
  bool wins = false;
  bool fails = false;  // the call, as far as one can say now
  {
    MutexLock lock(call.mu);
    --call.open;
    wins = call.winner == nullptr && (ok || (!goes_on && !cut));
    if (wins) {
      call.winner = &attempt;
      call.over = true;
      fails = !ok;
    } else if (call.winner == nullptr && (cut || !call.over || call.last == nullptr)) {
      call.last = &attempt;
    }
    if (goes_on && !ok && !cut && !call.over) {
      const int64_t pushback = PushbackMs(attempt).value_or(0);
      if (!attempt.unprocessed) members_[call.index].attempts.HedgeFailed();
      if (pushback < 0) call.stop = true, call.left = 0;
      call.next = Now() + std::chrono::milliseconds(std::max<int64_t>(pushback, 0));
      fails = call.open == 0 && call.left == 0 && !attempt.unprocessed;
    }
  }
  if (wins) StopHedges(call, &attempt);
  if (!wins && !fails) SendDueHedges(call, true);
  if (fails && batch_.fail_fast) OnCancel();
  Complete();
}

void Fanout::SettleHedges() {
  for (HedgedCall& call : hedges_->calls) {
    Member& own = members_[call.index];
    if (ConnectionOf(call.index) == nullptr) continue;
    MutexLock lock(call.mu);
    Member* const best = call.winner != nullptr ? call.winner : call.last != nullptr ? call.last : &own;
    own.attempts.NoteHedges(call.sent, call.stop);
    own.hedges += static_cast<uint32_t>(call.sent);
    if (best == &own) continue;
    own.status = std::move(best->status);
    own.reply.swap(best->reply);
    std::swap(own.metadata, best->metadata);
    own.committed = best->committed;
    own.unprocessed = best->unprocessed;
    own.answered = best->answered;
  }
}

}  // namespace curtail::internal
