// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Hedging of event-driven calls, by the rules of hedging.cc, on the one thread that polls. The call itself is the
// first attempt, and keeps the deadline, the wait for the next one, and the bytes to send. When all attempts have ended,
// those that were cancelled included, the outcome of the one that counts becomes the call's, and goes its usual way. A
// cancellation that was posted is waited for like a call: its object may not be used again before.
#include <algorithm>
#include <utility>

#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/channel_impl.h"

namespace curtail {

using internal::Connection;
using internal::HedgedStart;
using internal::StartedCall;

void internal::StartedCall::CancelHandled() {
  // Without hedging Finished() has run by then, and may have put the object to use again: nothing is left to do.
  if (!cut) return;
  const std::shared_ptr<HedgedStart> group = hedged;
  --group->pending;
  client->impl_->SettleHedges(group);
}

void Client::Impl::BeginHedges(StartedCall* call, TimePoint now) {
  const internal::HedgingPolicy& policy = *call->attempts.method()->hedging;
  call->hedged = std::make_shared<HedgedStart>(call);
  call->hedged->left = policy.max_attempts - 1 - call->attempts.failed();
  waits.Insert(call->wait, now + policy.delay);
}

void Client::Impl::SendHedge(const std::shared_ptr<HedgedStart>& group) {
  StartedCall* const first = group->attempts.front();
  if (group->left > 0 && !first->attempts.MayHedge()) group->left = 0;
  if (group->over || group->left <= 0) return;
  --group->left;
  const TimePoint now = Now();
  std::vector<const internal::SharedBackend*> used;
  for (StartedCall* attempt : group->attempts) used.push_back(attempt->connection->server());
  Channel::Impl::Connected connection =
      first->channel->impl().Acquire(lanes[0]->poller(), now, first->kept_metadata, used);
  waits.Remove(first->wait);
  waits.Insert(first->wait, now + first->attempts.method()->hedging->delay);
  if (!connection.ok()) return;
  StartedCall* const attempt = NewCall();
  attempt->client = first->client;
  attempt->channel = first->channel;
  attempt->attempts = internal::Attempts();
  attempt->head = first->head;
  attempt->head.metadata = first->kept_metadata;
  attempt->head.metadata.AddLowerCase(
      internal::kAttemptsKey,
      std::to_string(first->attempts.failed() + static_cast<int>(group->attempts.size())));
  attempt->message = first->kept_message;
  attempt->head.timeout.reset();
  attempt->SetTimeout(first->armed() ? Deadline::At(first->when()) : Deadline::Infinite(), now);
  attempt->hedged = group;
  group->attempts.push_back(attempt);
  ++group->pending;
  ++group->open;
  attempt->connection = *std::move(connection);
  attempt->connection->Begin(*attempt);
  Touch(attempt->connection);
}

void Client::Impl::StopHedges(HedgedStart& group, const StartedCall* winner,
                              std::vector<std::shared_ptr<internal::ClientConnection>>* kick) {
  group.over = true;
  waits.Remove(group.attempts.front()->wait);
  for (StartedCall* attempt : group.attempts) {
    if (attempt == winner || std::exchange(attempt->cut, true)) continue;
    ++group.pending;
    attempt->connection->Post(&attempt->cancel);
    kick->push_back(attempt->connection);
  }
}

void Client::Impl::HedgeEnded(StartedCall* attempt) {
  const std::shared_ptr<HedgedStart> group = attempt->hedged;
  StartedCall* const first = group->attempts.front();
  const internal::HedgingPolicy& policy = *first->attempts.method()->hedging;
  const bool ok = attempt->status.ok();
  const bool goes_on =
      attempt->unprocessed || (!attempt->committed && policy.IsNonFatal(attempt->status.code()));
  --group->open;
  if (group->winner == nullptr && (ok || (!goes_on && !attempt->cut))) {
    group->winner = attempt;
    std::vector<std::shared_ptr<internal::ClientConnection>> kick;
    StopHedges(*group, attempt, &kick);
    for (const auto& connection : kick) connection->Kick(Connection::kPosted, nullptr);
  } else if (group->winner == nullptr) {
    if (attempt->cut || !group->over || group->last == nullptr) group->last = attempt;
    if (!group->over) {
      const int64_t pushback = internal::PushbackMs(*attempt).value_or(0);
      if (!attempt->unprocessed) first->attempts.HedgeFailed();
      if (pushback < 0) group->stop = true, group->left = 0;
      if (pushback == 0) SendHedge(group);
      if (pushback > 0 && group->open > 0) {
        waits.Remove(first->wait);
        waits.Insert(first->wait, Now() + std::chrono::milliseconds(pushback));
      }
    }
  }
  --group->pending;
  SettleHedges(group);
}

void Client::Impl::SettleHedges(const std::shared_ptr<HedgedStart>& group) {
  if (group->pending > 0) return;
  StartedCall* const first = group->attempts.front();
  StartedCall* const best = group->winner != nullptr ? group->winner : group->last;
  if (best != first) {
    first->status = std::move(best->status);
    first->reply.swap(best->reply);
    std::swap(first->metadata, best->metadata);
    first->committed = best->committed;
    first->unprocessed = best->unprocessed;
  }
  first->attempts.NoteHedges(static_cast<int>(group->attempts.size()) - 1, group->stop);
  waits.Remove(first->wait);
  for (StartedCall* attempt : group->attempts) {
    attempt->hedged.reset();
    attempt->cut = false;
    if (attempt == first) continue;
    attempt->connection.reset();
    free_calls.push_back(attempt);
  }
  first->Finished();
}

}  // namespace curtail
