// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/sync.h"

#include "curtail/exec/wait.h"

namespace curtail {
namespace internal {

bool WaitList::Entry::Wait(Deadline deadline) {
  FlushBeforeWait();
  while (true) {
    const uint32_t ticket = parker.Ticket();
    if (ticket & kGranted) return true;
    if (deadline.Expired()) return false;
    parker.Wait(ticket, deadline);
  }
}

void WaitList::Push(Entry& entry) {
  entry.prev = tail_;
  entry.next = nullptr;
  entry.listed = true;
  (tail_ ? tail_->next : head_) = &entry;
  tail_ = &entry;
}

WaitList::Entry* WaitList::Pop() {
  Entry* const first = head_;
  if (first != nullptr) Remove(*first);
  return first;
}

void WaitList::Remove(Entry& entry) {
  (entry.prev ? entry.prev->next : head_) = entry.next;
  (entry.next ? entry.next->prev : tail_) = entry.prev;
  entry.listed = false;
}

}  // namespace internal

using internal::WaitList;

void FiberMutex::lock() {
  WaitList::Entry me;
  {
    MutexLock lock(mu_);
    if (!held_) {
      held_ = true;
      return;
    }
    waiters_.Push(me);
  }
  me.Wait(Deadline::Infinite());  // the holder hands it over
}

bool FiberMutex::try_lock() {
  MutexLock lock(mu_);
  if (held_) return false;
  return held_ = true;
}

void FiberMutex::unlock() {
  WaitList::Entry* next = nullptr;
  {
    MutexLock lock(mu_);
    next = waiters_.Pop();
    if (next == nullptr) held_ = false;
  }
  if (next != nullptr) next->Grant();
}

bool FiberCondition::wait_until(std::unique_lock<FiberMutex>& lock, Deadline deadline) {
  WaitList::Entry me;
  {
    MutexLock guard(mu_);
    waiters_.Push(me);
  }
  lock.unlock();
  bool notified = me.Wait(deadline);
  if (!notified) {
    MutexLock guard(mu_);
    if (me.listed) {
      waiters_.Remove(me);
    } else {
      notified = true;  // the notification is on its way
    }
  }
  if (notified) me.Wait(Deadline::Infinite());
  lock.lock();
  return notified;
}

void FiberCondition::notify_one() {
  WaitList::Entry* first = nullptr;
  {
    MutexLock guard(mu_);
    first = waiters_.Pop();
  }
  if (first != nullptr) first->Grant();
}

void FiberCondition::notify_all() {
  // A waiter that is granted may be gone at once, and one that times out looks at the list: so all leave it first.
  WaitList::Entry* granted = nullptr;
  {
    MutexLock guard(mu_);
    while (WaitList::Entry* first = waiters_.Pop()) {
      first->next = granted;
      granted = first;
    }
  }
  while (granted != nullptr) {
    WaitList::Entry* const next = granted->next;
    granted->Grant();
    granted = next;
  }
}

}  // namespace curtail
