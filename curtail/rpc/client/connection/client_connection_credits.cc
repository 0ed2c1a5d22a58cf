// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A call without a credit stays on its connection, where its start was carried out. Its starter waits as for an
// answer, and its cancellation finds it there. The thread that takes an answer sends those that have a credit by then.
#include <algorithm>

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

bool ClientConnection::TakeCredit(ClientCall& call) {
  if (credits_->Take()) {
    call.has_credit_ = true;
    call.head.metadata.AddLowerCase(kDemandKey, "0");
    return true;
  }
  if (credits_->Wait(&call)) {
    LookNext(TimePoint(Nanos(look_at_.load(std::memory_order_relaxed))));
  } else {
    Refuse(call, "too many calls wait for credits");
  }
  return false;
}

void ClientConnection::SendWaiting() {
  if (credits_->waiting() == 0 || closed() || !usable_.load(std::memory_order_relaxed)) return;
  const TimePoint now = Now();
  RefuseOverdue(now);
  while (ClientCall* const call = credits_->Next(now)) {
    call->has_credit_ = true;
    if (call->head.timeout) call->head.timeout = std::max(call->due - now, Nanos(1));
    call->head.metadata.AddLowerCase(kDemandKey, std::to_string(credits_->waiting()));
    Send(*call);
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
