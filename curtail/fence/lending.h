// SPDX-License-Identifier: Apache-2.0
//
// lending.h - kOn: permits that classes lend each other, unless one of them stalls.
//
// The rules.
//
//  L1  All permits together are the threads of the config, or FenceOptions::permits where a waiting
//      request holds none. The pool has threads beside them (Order::Beside): half as many, at least
//      two. If the pool cannot have them, as many of its own take their place.
//  L2  The need of a class is the most requests that it had begun or waiting at once, in this
//      window of kWindow and the one before. Its reserve is its need. Where the needs exceed the
//      permits together, the largest are cut to one level (FitClaims).
//  L3  A class begins a request while fewer permits are used than there are: no request waits
//      beside an idle permit. Rules L5 and L8 are the exceptions.
//  L4  A class below its reserve has the next permit that any class returns. Until then its
//      requests begin on the threads beside, all but one. That one serves local tasks, refusals and
//      reception. A class that stalls has of these threads its first request only.
//  L5  A class that stalls begins a request above its reserve while classes that stall use fewer
//      permits than there are, and the others find their reserves: in the permits that are left and
//      the threads beside, all but one.
//  L6  A turn of a class begins with a request. It ends as soon as the class has ended as many as
//      were in progress then, whichever they are. Every eighth request begins a turn if none is on,
//      and so does each that sums permits (lending.cc). The pace is the smoothed length of turns,
//      over a few. The base is their usual length: each window moves it towards its mean, by half
//      at first, later by 1/32. While the class stalls it grows by 1/1024: it doubles in 6 minutes.
//  L7  A class stalls while its pace exceeds kSlowdown bases and kLeastStall. The pace becomes so
//      long, too, once no request in progress has ended for such a time. If they are kSilent or
//      more, three bases and kLeastSilence suffice. Before its first turn has ended, a class stalls
//      once none has ended for kFirstStall. If all stall, they lend each other as before: what they
//      share is slow, as the CPU, and no permit makes it faster.
//  L8  A limit (Fence::SetLimit) bounds its class, whoever is idle.
//  L9  If fewer threads are left than permits in use, reserves suffice until enough have ended: the
//      threads of a former config may hold those requests.
//
// So a class that stops to answer keeps the permits that it had, and leaves all others what they
// needed until then. Without a clock, a change is seen at the next Append(): a class whose requests
// are held back has some in progress, whose ends bring one (rule F5 of fenced_order.h).
//
// Thread safety: none of its own. The executor's mutex guards every call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "curtail/base/clock.h"
#include "curtail/fence/fence.h"

namespace curtail {

// A FenceLending decides which class may begin another request. It follows the limits of its Fence.
class FenceLending {
 public:
  static constexpr Nanos kWindow = std::chrono::milliseconds(500);
  static constexpr int kSlowdown = 8;
  static constexpr Nanos kLeastStall = std::chrono::milliseconds(5);
  static constexpr uint64_t kSilent = 4;
  static constexpr Nanos kLeastSilence = std::chrono::milliseconds(2);
  static constexpr Nanos kFirstStall = std::chrono::milliseconds(10);
  // A full queue refuses once its first request has waited so long (rule F6).
  static constexpr Nanos kStands = std::chrono::seconds(1);
  // Take() may succeed where TakeOwn() does not.
  static constexpr bool kLends = true;

  explicit FenceLending(Fence* fence);

  // Order::Beside().
  static uint32_t Beside(uint32_t threads);
  // Order::SetThreads().
  void SetThreads(uint32_t threads);
  // Takes new limits into account.
  void Refresh() {
    const uint32_t version = fence_.version_.load(std::memory_order_acquire);
    if (version != version_) ReadLimits(version);
  }

  // True if the class may begin another request at `now`. Then it does, before the next call.
  bool Take(uint8_t path_class, TimePoint now) {
    const Fence::State& state = fence_.states_[path_class];
    const uint64_t begun = state.begun.load(std::memory_order_relaxed);
    // F5: a count that is old takes more steps, and those read it again.
    const uint64_t ended = state.ended.load(std::memory_order_relaxed);
    const uint64_t in_use = begun - ended;
    Class& c = classes_[path_class];
    if (in_use >= c.reserve || overdrawn_ || begun % kEachTurn == 0) return TakeSlowly(path_class, now);
    if (in_use >= c.most_now) c.most_now = static_cast<uint32_t>(in_use) + 1;
    if (ended != c.ended) c.ended = ended, c.moved = now;
    return true;
  }
  // The same within the reserve of the class.
  bool TakeOwn(uint8_t path_class, TimePoint now) {
    return fence_.InUse(path_class) < classes_[path_class].reserve && Take(path_class, now);
  }
  // So many requests of the class wait now.
  void Waits(uint8_t path_class, size_t waiting);

  uint32_t permits() const { return permits_; }
  uint32_t reserve(uint8_t path_class) const { return classes_[path_class].reserve; }
  // Rule L7.
  bool Stalls(uint8_t path_class, TimePoint now);

 private:
  static constexpr uint64_t kEachTurn = 8;
  static constexpr uint8_t kFirstWindows = 2;

  struct Class {
    uint32_t reserve = 0;
    uint32_t limit = 0;
    // The most requests begun or waiting at once, in the present window and in the one before.
    uint32_t most_now = 0;
    uint32_t most_before = 0;
    uint32_t waiting = 0;
    // Turns. In nanoseconds; 0: none has ended.
    bool on_turn = false;
    uint8_t windows = 0;  // with turns, the first few
    uint32_t turns = 0;   // that ended in this window
    int64_t took = 0;     // ... all together
    int64_t pace = 0;
    int64_t base = 0;
    // The ends that were seen, and when the last of them was, or the first begin after it.
    uint64_t ended = 0;
    TimePoint moved;
  };

  [[gnu::noinline]] bool TakeSlowly(uint8_t path_class, TimePoint now);
  bool MayBegin(uint8_t path_class, TimePoint now);
  void Need(uint8_t path_class, uint64_t most);
  // The permits that may be in use, the threads beside included.
  uint64_t Most() const { return uint64_t{permits_} + beside_ - 1; }
  void ReadLimits(uint32_t version);
  void Fit();
  void EndWindow(TimePoint now);
  void BeginTurn(uint8_t path_class, TimePoint now);
  // Hears of a turn that has ended.
  void HearTurn(uint8_t path_class);
  void HearEnds(uint8_t path_class, TimePoint now);
  static void MoveBase(Class& c);

  Fence& fence_;
  uint32_t version_ = 0;  // of the limits
  uint32_t permits_ = 1;
  uint32_t beside_ = 1;  // threads
  uint64_t known_ = 0;   // classes that have begun requests, as bits
  // The permits in use, and the idle ones of reserves, may be more than all.
  bool overdrawn_ = false;
  bool overfull_ = false;  // more were in use when the threads became fewer
  TimePoint window_ends_;
  std::array<Class, Fence::kMaxClasses> classes_;
};

}  // namespace curtail
