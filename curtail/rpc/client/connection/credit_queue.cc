// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/connection/credit_queue.h"

#include <algorithm>
#include <utility>

#include "curtail/rpc/client/connection/client_call.h"

namespace curtail::internal {

bool CreditQueue::Take() {
  const bool has = waiting_.empty() && open_ < credits_;
  open_ += has;
  Note();
  return has;
}

bool CreditQueue::Wait(ClientCall* call) {
  if (waiting_.size() >= kMostWaiting) return false;
  waiting_.push_back(call);
  return true;
}

ClientCall* CreditQueue::Next(TimePoint now) {
  if (open_ >= credits_ || waiting_.empty()) return nullptr;
  ClientCall* call = waiting_.front();
  if (now - call->waits_since > kStands) {
    call = waiting_.back();
    waiting_.pop_back();
  } else {
    waiting_.pop_front();
  }
  ++open_;
  Note();
  return call;
}

ClientCall* CreditQueue::NextOverdue(TimePoint now) {
  // Those that have little time may stand behind others.
  const auto overdue = std::find_if(waiting_.begin(), waiting_.end(),
                                    [now](const ClientCall* call) { return call->leaves_by <= now; });
  if (overdue == waiting_.end()) return nullptr;
  ClientCall* const call = *overdue;
  waiting_.erase(overdue);
  return call;
}

ClientCall* CreditQueue::Any() {
  if (waiting_.empty()) return nullptr;
  ClientCall* const call = waiting_.front();
  waiting_.pop_front();
  return call;
}

bool CreditQueue::Remove(ClientCall* call) { return std::erase(waiting_, call) > 0; }

void CreditQueue::AnswerCame(bool ok, const wire::Metadata& trailing) {
  --open_;
  if (const auto text = trailing.Find(kCreditsKey)) {
    if (const std::optional<uint32_t> credits = ParseCredits(*text)) {
      credits_ = std::max(*credits, 1u);
      told_ = true;
    }
  } else if (ok && !told_) {
    credits_ = UINT32_MAX;
  }
  Note();
}

TimePoint CreditQueue::first_overdue() const {
  TimePoint first = TimePoint::max();
  for (const ClientCall* call : waiting_) first = std::min(first, call->leaves_by);
  return first;
}

}  // namespace curtail::internal
