// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. No thread belongs to a lane. Threads that wait for replies drive it: one of them, the leader, waits
// in the poller and handles what comes, its own replies and those of others alike; the rest, the followers,
// sleep until their calls are done. A thread that waits alone, the common case at low load, leads at once and
// meets nobody.
//
//  L1  leader_ is set and handed over only under the mutex; only the leader waits on the poller and touches
//      events_.
//  L2  A waiter joins as leader if there is none, otherwise as follower. On the way out it hands leadership
//      to a follower, or takes itself from the followers. So leader_ is null only when nobody waits.
//  L3  A promotion is notified under the mutex, and a waiter takes the mutex on its way out: so a promoted
//      waiter cannot vanish before its notification has ended.
//  L4  kDone is the last touch of a waiter by those that complete it (parker.h): it may return, and die, at
//      once.
//  L5  A leader sets kLeading before it looks for kDone and then enters the poller; whoever sets kDone sees
//      kLeading in the same atomic step, and wakes the poller unless it is the leader itself. One of the two
//      sees the other.
//
// Races considered: a follower whose deadline passes while it is promoted leaves as leader, by L2, and hands
// on; an edge-triggered event that the leader passes to a connection held by another thread is taken along by
// that thread.
#include "curtail/rpc/call/lane.h"

namespace curtail {

void Waiter::Notify(uint32_t signal) {
  if (pthread_equal(thread_, pthread_self()) != 0 || lane_ == nullptr) {
    parker_.Notify(signal);
    return;
  }
  const std::shared_ptr<Poller> poller = lane_->poller();  // the lane may be gone with the waiter
  if (parker_.Notify(signal) & kLeading) poller->Wake();   // L5
}

void Waiter::WaitOnFiber(Deadline deadline) {
  while (true) {
    const uint32_t ticket = parker_.Ticket();
    if (ticket & (kDone | kInterrupted)) return;
    parker_.Wait(ticket, deadline);
    if (!Has(kDone | kInterrupted) && deadline.Expired()) return;
  }
}

bool Lane::Join(Waiter& waiter) {
  MutexLock lock(mu_);
  if (leader_ == nullptr) {
    leader_ = &waiter;
    return true;
  }
  waiter.next_ = followers_;
  if (followers_ != nullptr) followers_->prev_ = &waiter;
  followers_ = &waiter;
  return false;
}

void Lane::Leave(Waiter& waiter) {
  MutexLock lock(mu_);
  if (leader_ != &waiter) {
    (waiter.prev_ ? waiter.prev_->next_ : followers_) = waiter.next_;
    if (waiter.next_ != nullptr) waiter.next_->prev_ = waiter.prev_;
    waiter.prev_ = waiter.next_ = nullptr;
    return;
  }
  Waiter* heir = followers_;
  leader_ = heir;
  if (heir == nullptr) return;
  followers_ = heir->next_;
  if (followers_ != nullptr) followers_->prev_ = nullptr;
  heir->prev_ = heir->next_ = nullptr;
  heir->Notify(Waiter::kPromoted);  // L3
}

void Lane::Lead(Waiter& waiter, Deadline deadline, SpinBudget* spin) {
  waiter.parker_.Set(Waiter::kLeading);  // L5
  bool late = false;
  while (!waiter.Has(Waiter::kDone | Waiter::kInterrupted) && !late) {
    late = poller_->Wait(deadline, spin, &events_);
    for (const Poller::Ready& ready : events_) ready.Handle(nullptr);
    events_.clear();
  }
  waiter.Clear(Waiter::kLeading);
}

void Lane::Wait(Waiter& waiter, Deadline deadline, SpinBudget* spin) {
  if (waiter.Has(Waiter::kDone | Waiter::kInterrupted)) return;
  if (Join(waiter)) {
    Lead(waiter, deadline, spin);
  } else {
    while (true) {
      const uint32_t ticket = waiter.parker_.Ticket();
      if ((ticket & (Waiter::kDone | Waiter::kInterrupted)) || deadline.Expired()) break;
      if (ticket & Waiter::kPromoted) {
        Lead(waiter, deadline, spin);
        break;
      }
      waiter.parker_.Wait(ticket, deadline);
    }
  }
  Leave(waiter);  // L2
  waiter.Clear(Waiter::kPromoted);
}

void Lane::PollOnce(Deadline deadline) {
  poller_->Wait(deadline, nullptr, &events_);
  for (const Poller::Ready& ready : events_) ready.Handle(nullptr);
  events_.clear();
}

}  // namespace curtail
