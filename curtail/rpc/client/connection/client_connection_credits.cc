// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A call without a credit stays on its connection, where its start was carried out. Its starter waits as for an
// answer, and its cancellation finds it there. The thread that takes an answer sends those that have a credit by then.
//
// The head of a call that was begun is not changed, because other threads may copy it for another attempt (H6 of
// hedging.cc). So the strand's holder sends a copy that has the demand and the time that is left.
#include <algorithm>
#include <string>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/rpc/client/connection/client_connection.h"

namespace curtail::internal {

void ClientConnection::NoteWait(ClientCall& call) {
  call.waits_since = Now();
  call.leaves_by = CreditQueue::LeavesBy(call.waits_since, call.due);
  // The waiter asks when to look before it sleeps, perhaps before the strand's holder has the call.
  if (!credits_->scarce()) return;
  const TimePoint before(Nanos(look_at_.load(std::memory_order_relaxed)));
  if (call.leaves_by < before) LookAt(call.leaves_by);
}

void ClientConnection::SendOrWait(ClientCall& call) {
  if (credits_->Take()) return SendWithCredit(call, wire::RequestHead(call.head), 0);
  if (credits_->Wait(&call)) {
    LookNext(TimePoint(Nanos(look_at_.load(std::memory_order_relaxed))));
  } else {
    Refuse(call, "too many calls wait for credits");
  }
}

void ClientConnection::SendWithCredit(ClientCall& call, wire::RequestHead head, size_t demand) {
  call.has_credit_ = true;
  head.metadata.AddLowerCase(kDemandKey, std::to_string(demand));
  Send(call, head);
}

void ClientConnection::SendWaiting() {
  if (credits_->waiting() == 0 || closed() || !usable_.load(std::memory_order_relaxed)) return;
  const TimePoint now = Now();
  RefuseOverdue(now);
  while (ClientCall* const call = credits_->Next(now)) {
    wire::RequestHead head = call->head;
    if (head.timeout) head.timeout = std::max(call->due - now, Nanos(1));
    SendWithCredit(*call, std::move(head), credits_->waiting());
  }
}

void ClientConnection::Refuse(ClientCall& call, std::string_view why) {
  call.status = absl::ResourceExhaustedError(Join(target_, ": ", why));
  call.no_credit = true;
  Finish(call);
}

void ClientConnection::RefuseOverdue(TimePoint now) {
  while (ClientCall* const call = credits_->NextOverdue(now)) Refuse(*call, "no credit in time");
}

void ClientConnection::EndWaiting(const absl::Status& why) {
  while (ClientCall* const call = credits_->Any()) {
    call->status = why;
    call->unprocessed = true;
    Finish(*call);
  }
}

void ClientConnection::LookNext(TimePoint when) {
  LookAt(credits_ == nullptr ? when : std::min(when, credits_->first_overdue()));
}

}  // namespace curtail::internal
