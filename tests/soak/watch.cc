// SPDX-License-Identifier: Apache-2.0
#include "watch.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <utility>

namespace curtail::soak {
namespace {

constexpr std::chrono::milliseconds kLookEvery(2);
constexpr std::chrono::seconds kStall(1);

}  // namespace

void Watch::Slot::Begin(std::string kind, Context* ctx, TimePoint cancel_at, TimePoint due) {
  MutexLock lock(mu_);
  kind_ = std::move(kind), ctx_ = ctx, cancel_at_ = cancel_at, due_ = due;
}

void Watch::Slot::End() {
  MutexLock lock(mu_);
  ctx_ = nullptr, cancel_at_ = due_ = TimePoint::max();
}

Watch::Watch(Nanos bound)
    : bound_(bound), last_look_(Now().time_since_epoch().count()), thread_([this] { Run(); }) {}

Watch::~Watch() {
  {
    std::lock_guard lock(mu_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

Watch::Slot* Watch::NewSlot() {
  std::lock_guard lock(mu_);
  return &slots_.emplace_back();
}

bool Watch::StalledSince(uint64_t stalls) const {
  const TimePoint last{Nanos(last_look_.load(std::memory_order_relaxed))};
  return this->stalls() != stalls || Now() - last >= kStall;
}

void Watch::Run() {
  std::unique_lock lock(mu_);
  while (!stopped_.wait_for(lock, kLookEvery, [this] { return stop_; })) {
    const TimePoint now = Now();
    const Nanos gap = now - TimePoint(Nanos(last_look_.load(std::memory_order_relaxed)));
    if (gap >= kStall) stalls_.fetch_add(1, std::memory_order_relaxed);
    last_look_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    for (Slot& slot : slots_) Look(slot, now, gap >= kStall ? gap : Nanos(0));
  }
}

void Watch::Look(Slot& slot, TimePoint now, Nanos stall) {
  MutexLock lock(slot.mu_);
  if (slot.due_ == TimePoint::max()) return;
  slot.due_ += stall;
  if (now >= slot.cancel_at_) {
    if (slot.ctx_ != nullptr) slot.ctx_->Cancel();
    slot.due_ = std::min(slot.due_, now);
    slot.cancel_at_ = TimePoint::max();
  }
  if (now < slot.due_ + bound_) return;
  std::cerr << "soak: a call is stuck: " << slot.kind_ << " should have ended " << InMillis(now - slot.due_)
            << " ms ago\n";
  std::abort();
}

}  // namespace curtail::soak
