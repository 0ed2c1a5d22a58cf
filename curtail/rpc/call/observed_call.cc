// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/call/observed_call.h"

#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/internal/recycler.h"

namespace curtail::internal {
namespace {

// Of the call of a note, of an observer that chooses.
uint32_t EventsOf(const CallObserver& observer, uint64_t note) {
  return observer.WantsOf(note) & ~uint32_t{kChoosesByCall};
}

}  // namespace

absl::Status CallObservers::Add(CallObserver* observer) {
  if (count_ == kMost) {
    return absl::InvalidArgumentError(
        Join("a server has ", kMost, " observers of its calls at most, its policy included"));
  }
  const uint32_t wants = observer->Wants();
  if ((wants & kKeepsLateChildren) && late_judge_ != nullptr) {
    return absl::InvalidArgumentError("one observer of a server at most says which calls end late");
  }
  entries_[count_++] = {observer, wants, wants & kChoosesByCall ? EventsOf(*observer, 0) : wants};
  wanted_ |= wants;
  if (wants & kKeepsLateChildren) late_judge_ = observer;
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
  record_.kept = {};
  kept_ = nullptr;
  for (size_t i = 0; i < observers.count_; ++i) {
    const CallObservers::Entry& entry = observers.entries_[i];
    notes_[i] = entry.wants & kCallArrived ? entry.observer->Arrived(record_) : 0;
    uint32_t wants = entry.wants_of_none;
    if (notes_[i] != 0 && (entry.wants & kChoosesByCall)) [[unlikely]]
      wants = EventsOf(*entry.observer, notes_[i]);
    wants_[i] = static_cast<uint16_t>(wants);
    wanted_ |= wants;
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
  if (kept_ != nullptr) ShowKept();
  Tell(kCallReplied, [&](CallObserver& observer, uint64_t note) { observer.Replied(record_, note); });
  if (kept_ != nullptr && !(wanted_ & kCallOver)) GiveKept();
}

void ObservedCall::ShowKept() {
  const size_t count = kept_->count.load(std::memory_order_relaxed);
  const std::span<ChildCall> kept = std::span(kept_->calls).first(std::min(count, kept_->calls.size()));
  const auto earlier = [](const ChildCall& a, const ChildCall& b) { return a.ordinal < b.ordinal; };
  if (!std::is_sorted(kept.begin(), kept.end(), earlier)) std::sort(kept.begin(), kept.end(), earlier);
  record_.kept = kept;
}

void ObservedCall::GiveKept() {
  record_.kept = {};
  Recycler<KeptCalls>::Give(std::exchange(kept_, nullptr));
}

std::span<ChildCall> ObservedCall::Keep(size_t n) const {
  const std::atomic_ref<KeptCalls*> kept(kept_);
  KeptCalls* room = kept.load(std::memory_order_acquire);
  if (room == nullptr) {
    KeptCalls* const fresh = Recycler<KeptCalls>::Take();
    if (kept.compare_exchange_strong(room, fresh, std::memory_order_acq_rel)) {
      room = fresh;
    } else {
      Recycler<KeptCalls>::Give(fresh);  // another thread was faster
    }
  }
  const size_t first = std::min<size_t>(
      room->count.fetch_add(static_cast<uint32_t>(n), std::memory_order_relaxed), room->calls.size());
  return std::span(room->calls).subspan(first, std::min(n, room->calls.size() - first));
}

TimePoint ObservedCall::Late() const {
  const Nanos after = observers_->late_judge_->LateAfter(record_);
  return after < TimePoint::max() - record_.arrived ? record_.arrived + after : TimePoint::max();
}

void ObservedCall::TellOver() {
  Replied(absl::StatusCode::kCancelled);  // unless it was answered
  if (wanted_ & kCallOver) {
    record_.over = Now();
    Tell(kCallOver, [&](CallObserver& observer, uint64_t note) { observer.Over(record_, note); });
  }
  if (kept_ != nullptr) GiveKept();
  wanted_ = 0;
}

}  // namespace curtail::internal
