// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/observed_call.h"

#include "curtail/base/strings.h"

namespace curtail::internal {

absl::Status CallObservers::Add(CallObserver* observer) {
  if (count_ == kMost) {
    return absl::InvalidArgumentError(
        Join("a server has ", kMost, " observers of its calls at most, its policy included"));
  }
  entries_[count_++] = {observer, observer->Wants()};
  wanted_ |= observer->Wants();
  return absl::OkStatus();
}

template <class F>
void ObservedCall::Tell(CallEvent event, F&& tell) const {
  for (size_t i = 0; i < observers_->count_; ++i) {
    if (wants_[i] & event) tell(*observers_->entries_[i].observer, notes_[i]);
  }
}

void ObservedCall::Arrived(const CallObservers& observers, std::string_view path, uint32_t method,
                           const Context& context, TimePoint now) {
  wanted_ = 0;
  children_ = 0;
  observers_ = &observers;
  record_.path = path;
  record_.method = method;
  record_.context = &context;
  record_.arrived = now;
  record_.dequeued = record_.began = record_.replied = record_.over = TimePoint();
  record_.code = absl::StatusCode::kOk;
  room_ = {};
  for (size_t i = 0; i < observers.count_; ++i) {
    const CallObservers::Entry& entry = observers.entries_[i];
    notes_[i] = entry.wants & kCallArrived ? entry.observer->Arrived(record_) : 0;
    const uint32_t wants = entry.wants & kChoosesByCall
                               ? entry.observer->WantsOf(notes_[i]) & ~uint32_t{kChoosesByCall}
                               : entry.wants;
    wants_[i] = static_cast<uint16_t>(wants);
    wanted_ |= wants;
    if ((wants & kKeepsChildren) && room_.empty()) room_ = entry.observer->Room(notes_[i]);
  }
}

void ObservedCall::TellDequeued() const {
  Tell(kCallDequeued, [&](CallObserver& observer, uint64_t note) { observer.Dequeued(record_, note); });
}

void ObservedCall::TellBegan() {
  record_.began = Now();
  Tell(kCallBegan, [&](CallObserver& observer, uint64_t note) { observer.Began(record_, note); });
}

void ObservedCall::ChildLeaves(const ChildCall& child, Carried carried) const {
  Tell(curtail::kChildLeaves,
       [&](CallObserver& observer, uint64_t note) { observer.ChildLeaves(record_, child, carried, note); });
}

void ObservedCall::ChildCalled(const ChildCall& child) const {
  Tell(curtail::kChildCalled,
       [&](CallObserver& observer, uint64_t note) { observer.ChildCalled(record_, child, note); });
}

void ObservedCall::ChildAnswered(const ChildCall& child) const {
  Tell(curtail::kChildAnswered,
       [&](CallObserver& observer, uint64_t note) { observer.ChildAnswered(record_, child, note); });
}

void ObservedCall::TellReplied(absl::StatusCode code) {
  record_.replied = Now();
  record_.code = code;
  record_.children = children_;
  Tell(kCallReplied, [&](CallObserver& observer, uint64_t note) { observer.Replied(record_, note); });
}

void ObservedCall::TellOver() {
  Replied(absl::StatusCode::kCancelled);  // unless it was answered
  if (wanted_ & kCallOver) {
    record_.over = Now();
    Tell(kCallOver, [&](CallObserver& observer, uint64_t note) { observer.Over(record_, note); });
  }
  wanted_ = 0;
}

}  // namespace curtail::internal
