// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A request that is within the reserve of its class begins with two loads and some comparisons, as under a
// strict fence: while all permits in use and all idle reserves together fit the permits, nothing has to be summed.
// Else, and once in kEachTurn requests, the steps below are taken; they visit the classes that have requests.
//
// A clock is read once a turn, by the thread that ends it. The handshake is turn_took: the order sets it to zero and
// then turn_ends, before any request can end the turn; the one thread whose count of ends is turn_ends stores the time.
// That thread has seen turn_ends: it, or one whose end it counted, took its request from the order later.
#include "curtail/fence/lending.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "curtail/fence/shares.h"

namespace curtail {
namespace {

// Calls `each` with each class of the bits.
template <class Each>
void ForEach(uint64_t classes, const Each& each) {
  for (; classes != 0; classes &= classes - 1) each(static_cast<uint8_t>(std::countr_zero(classes)));
}

}  // namespace

FenceLending::FenceLending(Fence* fence) : fence_(*fence) { SetThreads(0); }

uint32_t FenceLending::Beside(uint32_t threads) { return std::max<uint32_t>(2, (threads + 1) / 2); }

void FenceLending::SetThreads(uint32_t threads) {  // L1
  if (threads == 0) {
    permits_ = std::max<uint32_t>(1, fence_.options().permits);
    beside_ = Beside(permits_);
  } else {
    permits_ = threads;
    while (permits_ > 1 && permits_ + Beside(permits_) > threads) --permits_;
    beside_ = std::max<uint32_t>(1, threads - permits_);
  }
  fence_.permits_.store(permits_, std::memory_order_relaxed);
  uint64_t used = 0;
  ForEach(known_, [&](uint8_t path_class) { used += fence_.InUse(path_class); });
  overfull_ = used >= Most();
  ReadLimits(fence_.version_.load(std::memory_order_acquire));
}

void FenceLending::ReadLimits(uint32_t version) {
  version_ = version;
  const uint64_t present = fence_.present_.load(std::memory_order_relaxed) & ~Fence::Bit(Fence::kLocal);
  for (uint8_t path_class = 0; path_class < Fence::kMaxClasses; ++path_class) {
    Fence::State& state = fence_.states_[path_class];
    const uint32_t limit = std::min(state.limit.load(std::memory_order_relaxed), permits_);
    classes_[path_class].limit = limit;
    state.share.store((present & Fence::Bit(path_class)) != 0 ? limit : 0, std::memory_order_relaxed);
  }
  Fit();
}

void FenceLending::Fit() {  // L2
  std::array<uint32_t, Fence::kMaxClasses> claims;
  size_t count = 0;
  uint64_t claiming = 0;
  ForEach(known_, [&](uint8_t path_class) {
    Class& c = classes_[path_class];
    c.reserve = 0;
    const uint32_t need = std::max(c.most_now, c.most_before);
    if (need == 0) return;
    claiming |= Fence::Bit(path_class);
    claims[count++] = std::min(need, c.limit);
  });
  FitClaims({claims.data(), count}, permits_);
  count = 0;
  ForEach(claiming, [&](uint8_t path_class) { classes_[path_class].reserve = claims[count++]; });
  overdrawn_ = true;  // until MayBegin() has summed
}

void FenceLending::Need(uint8_t path_class, uint64_t most) {
  Class& c = classes_[path_class];
  const auto need = static_cast<uint32_t>(std::min<uint64_t>(most, permits_));
  if (need <= c.most_now) return;
  c.most_now = need;
  if (need > c.most_before) Fit();
}

void FenceLending::Waits(uint8_t path_class, size_t waiting) {
  classes_[path_class].waiting = static_cast<uint32_t>(std::min<size_t>(waiting, permits_));
  if (waiting > 0) Need(path_class, fence_.InUse(path_class) + waiting);
}

void FenceLending::EndWindow(TimePoint now) {
  window_ends_ = now + kWindow;
  ForEach(known_, [&](uint8_t path_class) {
    Class& c = classes_[path_class];
    c.most_before = c.most_now;
    const uint64_t most = fence_.InUse(path_class) + c.waiting;
    c.most_now = static_cast<uint32_t>(std::min<uint64_t>(most, permits_));
    HearTurn(path_class);
    MoveBase(c);
  });
  Fit();
}

bool FenceLending::TakeSlowly(uint8_t path_class, TimePoint now) {
  known_ |= Fence::Bit(path_class);
  if (now >= window_ends_) EndWindow(now);
  const uint64_t in_use = fence_.InUse(path_class);
  HearEnds(path_class, now);
  Need(path_class, in_use + 1);
  const bool by_reserve = in_use < classes_[path_class].reserve && !overdrawn_;
  if (!by_reserve && !MayBegin(path_class, now)) return false;
  if (in_use >= classes_[path_class].reserve) Fence::Count(fence_.states_[path_class].borrowed);
  BeginTurn(path_class, now);
  return true;
}

bool FenceLending::MayBegin(uint8_t path_class, TimePoint now) {
  const Class& c = classes_[path_class];
  const bool stalls = Stalls(path_class, now);
  uint64_t used = 0, reserved = 0, lent = 0, kept = 0;
  ForEach(known_, [&](uint8_t other) {
    const uint64_t in_use = fence_.InUse(other);
    const uint64_t own = std::max<uint64_t>(in_use, classes_[other].reserve);
    const bool guarded = stalls && other != path_class && !Stalls(other, now);
    used += in_use;
    reserved += own;
    lent += guarded ? 0 : in_use;
    kept += guarded ? own : in_use;
  });
  const uint64_t in_use = fence_.InUse(path_class);
  overdrawn_ = reserved + (in_use >= c.reserve ? 1 : 0) > permits_;
  if (in_use >= c.limit) return false;  // L8
  overfull_ = overfull_ && used >= Most();
  const bool room = used < permits_ || (used < Most() && (in_use == 0 || !stalls)) || overfull_;
  if (in_use < c.reserve && room) return true;  // L4, L9
  return lent < permits_ && kept < Most();      // L3, L5
}

void FenceLending::BeginTurn(uint8_t path_class, TimePoint now) {  // L6
  HearTurn(path_class);
  Class& c = classes_[path_class];
  if (c.on_turn) return;
  c.on_turn = true;
  Fence::State& state = fence_.states_[path_class];
  state.turn_began.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  state.turn_took.store(0, std::memory_order_relaxed);
  state.turn_ends.store(state.begun.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void FenceLending::HearTurn(uint8_t path_class) {
  Class& c = classes_[path_class];
  if (!c.on_turn) return;
  const int64_t took = fence_.states_[path_class].turn_took.load(std::memory_order_acquire);
  if (took == 0) return;
  c.on_turn = false;
  c.took += took;
  ++c.turns;
  c.pace = c.pace == 0 ? took : c.pace + (took - c.pace) / 2;
  if (c.base == 0) c.base = took;
}

void FenceLending::MoveBase(Class& c) {  // L6
  if (c.turns == 0) return;
  const int64_t mean = std::exchange(c.took, 0) / std::exchange(c.turns, 0);
  if (c.windows == kFirstWindows && mean > std::max(kSlowdown * c.base, Nanos(kLeastStall).count())) {
    c.base += c.base / 1024 + 1;
    return;
  }
  c.base += (mean - c.base) / (c.windows < kFirstWindows ? 2 : 32);
  if (c.windows < kFirstWindows) ++c.windows;
}

void FenceLending::HearEnds(uint8_t path_class, TimePoint now) {
  Class& c = classes_[path_class];
  const uint64_t ended = fence_.states_[path_class].ended.load(std::memory_order_relaxed);
  if (ended == c.ended && fence_.InUse(path_class) > 0) return;
  c.ended = ended;
  c.moved = now;
}

bool FenceLending::Stalls(uint8_t path_class, TimePoint now) {  // L7
  HearTurn(path_class);
  HearEnds(path_class, now);
  Class& c = classes_[path_class];
  const uint64_t in_use = fence_.InUse(path_class);
  const Nanos silence = in_use > 0 ? now - c.moved : Nanos(0);
  if (c.base == 0) return silence > kFirstStall;
  const Nanos most = std::max(kSlowdown * Nanos(c.base), kLeastStall);
  const Nanos silent = in_use < kSilent ? most : std::max(3 * Nanos(c.base), kLeastSilence);
  if (silence > silent) c.pace = std::max(c.pace, 2 * most.count());
  return Nanos(c.pace) > most;
}

}  // namespace curtail
