// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The attempts at a hedged call are the call's own object, which is the first, and more of them. Its owner is a
// fan-out (fanout.h) or an event-driven call (channel_impl.h): they differ in who looks at the clock, and in who kicks a
// connection.
//
//  H1  The thread that sends the first attempt, the one that looks at the clock, and each that ends an attempt send those
//      that are due, one at a time, while the budget of retries lasts.
//  H2  An attempt decides its call with OK, with a status that the policy does not call non-fatal, or with an error after
//      the head of its reply. The first to do so wins and the others are cancelled. An attempt that fails otherwise makes
//      the next one due at once, or when its server said.
//  H3  A thread takes an attempt under the mutex, finds a connection without it, and begins the attempt under the mutex
//      again, unless the call is over by then. So a thread that ends the call cancels all that were begun, and no
//      cancellation is ahead of its call.
//  H4  No connection is kicked, asked for or let go of under the mutex: that may end attempts on this thread.
//  H5  waits_ counts the attempts that have not ended, the cancellations that were not handled, and the threads within
//      SendDue(), Stop() and Sent(). The thread that takes it to zero ends the round: the winner's outcome becomes the
//      first attempt's, or that of the attempt that failed last. From then on the owner has the call, and may make it
//      again as other calls are (Attempts::Again()).
//  H6  No thread changes the head of the first attempt within a round. So the thread that makes another attempt copies it
//      without the mutex, while the holder of the first's connection may be sending it.
//
// An attempt goes to a server that has none at this call, if the balancer names one within some choices; pick_first and
// ring_hash do not. An interceptor sees each round, and not each attempt.
#include "curtail/rpc/client/hedging.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "curtail/rpc/client/channel_impl.h"

namespace curtail::internal {
namespace {

// Another look at attempts that may not be sent yet.
constexpr Nanos kSoonAgain = std::chrono::milliseconds(1);

Metadata WithoutAttempts(const Metadata& from) {
  Metadata metadata;
  for (const auto& [key, value] : from) {
    if (key != kAttemptsKey) metadata.AddLowerCase(key, value);
  }
  return metadata;
}

}  // namespace

struct HedgedCall::Extra final : Attempt {
  explicit Extra(HedgedCall* c) : call(c) {}
  void Finished() override { call->Ended(*this); }
  void CancelHandled() override { call->Release(); }
  HedgedCall* const call;
};

HedgedCall::HedgedCall(Attempt& first, Attempts& attempts, Channel::Impl& channel)
    : first_(first), attempts_(attempts), channel_(channel), policy_(*attempts.method()->hedging) {}

HedgedCall::~HedgedCall() = default;

void HedgedCall::Begin(std::shared_ptr<Poller> poller, Deadline deadline, TimePoint now) {
  poller_ = std::move(poller);
  deadline_ = deadline;
  MutexLock lock(mu_);
  sending_ = over_ = false;
  left_ = policy_.max_attempts - 1 - attempts_.failed();
  waits_ = 2;  // the first attempt, and Sent()
  next_ = now + policy_.delay;
  winner_ = last_ = nullptr;
}

void HedgedCall::Sent() {
  {
    MutexLock lock(mu_);
    sending_ = true;
  }
  SendDue();
  Release();
}

Deadline HedgedCall::SendDue() {
  Deadline next = Deadline::Infinite();
  {
    MutexLock lock(mu_);
    if (waits_ == 0) return next;
    ++waits_;  // this thread's
  }
  for (TimePoint now = Now(); TakeDue(now, &next); now = Now()) Send(now);
  Plan(next);
  Release();
  return next;
}

bool HedgedCall::TakeDue(TimePoint now, Deadline* next) {
  MutexLock lock(mu_);
  *next = Deadline::Infinite();
  if (next_ <= now && !attempts_.MayHedge()) left_ = 0;
  if (over_ || left_ <= 0) return false;
  *next = next_ > now ? Deadline::At(next_) : Deadline::In(kSoonAgain);
  if (next_ > now || !sending_) return false;
  --left_;
  next_ = now + policy_.delay;
  return true;
}

void HedgedCall::Send(TimePoint now) {
  auto extra = std::make_unique<Extra>(this);
  extra->head = first_.head;
  extra->head.metadata = WithoutAttempts(first_.head.metadata);
  extra->head.timeout.reset();
  extra->SetTimeout(deadline_, now);
  if (!WriteRequest(&extra->message)) return;
  const std::shared_ptr<ClientConnection> connection = Connect(extra->head.metadata, now);
  if (connection == nullptr) return;
  {
    MutexLock lock(mu_);  // H3
    if (over_) return;
    sent_.push_back(std::move(extra));
    Extra& attempt = *sent_.back();
    attempt.head.metadata.AddLowerCase(kAttemptsKey,
                                       std::to_string(attempts_.failed() + static_cast<int>(sent_.size())));
    ++waits_;
    attempt.connection = connection;
    connection->Begin(attempt);
  }
  Kick(connection);
}

std::shared_ptr<ClientConnection> HedgedCall::Connect(const Metadata& metadata, TimePoint now) {
  std::array<const SharedBackend*, kMostAttempts> used{};
  size_t count = 0;
  used[count++] = first_.connection->server();
  {
    MutexLock lock(mu_);
    for (const auto& extra : sent_) used[count++] = extra->connection->server();
  }
  auto connection = channel_.Acquire(poller_, now, metadata, UsedServers(used.data(), count));
  return connection.ok() ? *std::move(connection) : nullptr;
}

void HedgedCall::Stop(const Attempt* winner) {
  {
    std::array<std::shared_ptr<ClientConnection>, kMostAttempts> kick;
    size_t count = 0;
    {
      MutexLock lock(mu_);
      if (waits_ == 0) return;
      ++waits_;  // this thread's
      over_ = true;
      std::array<Attempt*, kMostAttempts> attempts{&first_};
      size_t sent = 1;
      for (const auto& extra : sent_) attempts[sent++] = extra.get();
      for (Attempt* const attempt : std::span(attempts).first(sent)) {
        if (attempt == winner || attempt->cancelled.exchange(true, std::memory_order_relaxed)) continue;
        ++waits_;
        attempt->connection->Post(&attempt->cancel);
        kick[count++] = attempt->connection;
      }
    }
    for (size_t i = 0; i < count; ++i) Kick(kick[i]);
  }
  Release();
}

void HedgedCall::Ended(Attempt& attempt) {
  attempt.answered = Now();
  const bool cut = attempt.cancelled.load(std::memory_order_relaxed);
  const bool goes_on =
      !attempt.status.ok() &&
      (attempt.unprocessed || (!attempt.committed && policy_.IsNonFatal(attempt.status.code())));
  bool wins = false;
  {
    MutexLock lock(mu_);
    wins = winner_ == nullptr && !goes_on && (!cut || attempt.status.ok());
    if (wins) {
      winner_ = &attempt;
      over_ = true;
    } else if (winner_ == nullptr && (cut || !over_ || last_ == nullptr)) {
      last_ = &attempt;
    }
    if (goes_on && !cut && !over_) {
      const int64_t pushback = PushbackMs(attempt).value_or(0);
      if (!attempt.unprocessed) attempts_.HedgeFailed();
      if (pushback < 0) stop_ = true, left_ = 0;
      next_ = attempt.answered + std::chrono::milliseconds(std::max<int64_t>(pushback, 0));
    }
  }
  if (wins) {
    Stop(&attempt);
  } else {
    SendDue();
  }
  Release();
}

void HedgedCall::Release() {
  std::vector<std::unique_ptr<Extra>> ended;
  {
    MutexLock lock(mu_);
    if (--waits_ > 0) return;
    over_ = true;
    Settle();
    ended.swap(sent_);
  }
  const int hedges = static_cast<int>(ended.size());
  ended.clear();  // H4
  Over(hedges);
}

void HedgedCall::Settle() {
  attempts_.NoteHedges(static_cast<int>(sent_.size()), std::exchange(stop_, false));
  Attempt* const best = winner_ != nullptr ? winner_ : last_;
  if (best == &first_) return;
  first_.status = std::move(best->status);
  first_.reply.swap(best->reply);
  std::swap(first_.metadata, best->metadata);
  first_.committed = best->committed;
  first_.unprocessed = best->unprocessed;
  first_.answered = best->answered;
}

}  // namespace curtail::internal
