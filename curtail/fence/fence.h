// SPDX-License-Identifier: Apache-2.0
//
// fence.h - the permits of path classes: options, limits, counters.
//
// The path class of a request is the set of services that its handler may call. Each class has
// permits: a limit on requests that are begun and not answered. So a service that stalls fills its
// callers' permits, and no more. fenced_order.h has the rules; docs/design/fences.md says when to
// use it, and when not.
//
// Thread safety: all methods of a Fence from any thread; none blocks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/fence/meter.h"

namespace curtail {

enum class FenceMode : uint8_t {
  kOff,
  kDryRun,  // counts what kStrict would have done
  kStrict,  // no class uses another's permits
  kOn,      // idle permits are lent; a class that stalls leaves others what they need
};

// "off", "dry-run", "strict", "on"; empty for other texts.
std::optional<FenceMode> ParseFenceMode(std::string_view text);
std::string_view FenceModeName(FenceMode mode);

// How many requests of one class may run.
struct ClassLimit {
  // That its requests call, by their full names, or names of stores; in any order.
  std::vector<std::string> services;
  uint32_t limit = 0;
  friend bool operator==(const ClassLimit&, const ClassLimit&) = default;
};

// "a.Posts+a.Users", ascending: sets of services that are equal have one text.
std::string ServicesText(std::vector<std::string> services);
// Reads "a.Users+a.Posts=12". Errors: INVALID_ARGUMENT.
absl::StatusOr<ClassLimit> ParseClassLimit(std::string_view text);

struct FenceOptions {
  FenceMode mode = FenceMode::kOff;
  // The permits of all classes together under models whose waiting requests hold no thread (F and
  // A). Under synchronous models the number of threads takes its place.
  uint32_t permits = 256;
  // The requests of one class that may wait for a permit; more are refused. kOn: once the first of
  // them has waited for a second.
  uint32_t max_waiting = 128;
  // How the limits of classes come about: "fixed", or a limiter that follows each class
  // (limiter/limiter.h).
  std::string limit = "fixed";
  // The limits that these classes begin with; the others begin with equal shares. Limits that
  // follow move on from there.
  std::vector<ClassLimit> limits = {};
  // Learns the path class of every method that may wait, whatever it declares: to check
  // declarations, or to write them.
  bool learn = false;

  // True if limits follow.
  bool follows() const { return limit != "fixed"; }
  // INVALID_ARGUMENT for an unknown limit, and for classes without services, twice, or beyond
  // kMaxLimits. A limit that follows needs a mode that gives permits out, and fewer than
  // kMaxFollowed permits.
  absl::Status Check() const;
  static constexpr uint32_t kMaxFollowed = 1u << 15;  // occupancy.h
  static constexpr size_t kMaxLimits = 61;            // sets of services that have a class
};

// The present state of one class, and what it has counted since the start.
struct FenceClassStats {
  std::string name;        // "local", "unknown", "other", or the services: "a.Users+a.Posts"
  uint32_t limit = 0;      // its permits now, kOn: at most; 0: it needs none
  uint64_t in_use = 0;     // permits held
  uint32_t waiting = 0;    // requests without a permit
  uint64_t begun = 0;      // requests that got a permit, or needed none
  uint64_t queued = 0;     // ... had to wait for it; kDryRun: would have had to
  uint64_t refused = 0;    // found the queue full; kDryRun: would have been refused
  uint64_t borrowed = 0;   // kOn: began beyond what is kept for the class
  uint64_t shed = 0;       // waited too long in a queue that stood, or less important
  uint64_t late = 0;       // their deadline had passed when they came, or before they began
  uint64_t no_credit = 0;  // their client had no credit for them
  // That are of the class now: "/package.Service/Method".
  std::vector<std::string> methods = {};
};

// Calls that a method made to a service that it had not declared.
struct UndeclaredCalls {
  std::string method;   // "/package.Service/Method"
  std::string service;  // the first such: "package.Other"
  uint64_t times = 0;   // to any such service
};

// A Fence is the permits of one server. Its order (fenced_order.h) gives them out, under the
// executor's mutex; threads that end requests return them.
class Fence {
 public:
  static constexpr size_t kMaxClasses = 64;
  // Calls no other service; needs no permit.
  static constexpr uint8_t kLocal = 0;
  // Of methods of which too little is known.
  static constexpr uint8_t kUnknown = 1;
  // Shared by the sets of services beyond kMaxClasses.
  static constexpr uint8_t kOther = 2;
  static constexpr uint8_t kFirst = 3;
  // Of sets of classes.
  static constexpr uint64_t Bit(uint8_t path_class) { return uint64_t{1} << path_class; }
  // The default limit: an equal share. The limit of kUnknown is a quarter of all permits at most.
  static constexpr uint32_t kNoLimit = UINT32_MAX;
  // In the note of a task: it was shed, and has a permit to return.
  static constexpr uint8_t kShedWithPermit = 0x80;

  // `origin`: requests come later. `time` outlives the fence.
  explicit Fence(const FenceOptions& options, TimePoint origin = TimePoint(),
                 const TimeSource& time = RealTime())
      : options_(options),
        meter_(options.follows() ? std::make_unique<FenceMeter>(kMaxClasses, origin) : nullptr),
        time_(time) {}
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  const FenceOptions& options() const { return options_; }
  // Null if the limits are fixed.
  FenceMeter* meter() const { return meter_.get(); }
  // All permits, of all classes.
  uint32_t permits() const { return permits_.load(std::memory_order_relaxed); }

  // The limits. They hold from the next Append() of the order: submit an empty list after a raise.
  // A lower one interrupts no request. Limits that exceed the permits together are cut, the largest
  // first. REQUIRES: limit > 0.
  void SetLimit(uint8_t path_class, uint32_t limit);
  // The classes that methods have now, as bits: they share the permits.
  void SetPresent(uint64_t classes);

  // A request of the class has ended: returns its permit, once. True: requests are held back that
  // may have it, so the caller lets the order look (rule F5).
  [[nodiscard]] bool End(uint8_t path_class) {
    if (path_class == kLocal) return false;
    State& state = states_[path_class];
    // F5: pairs with Announce().
    const uint64_t ended = state.ended.fetch_add(1, std::memory_order_seq_cst) + 1;
    if (ended == state.turn_ends.load(std::memory_order_relaxed)) [[unlikely]]
      EndTurn(state);
    const uint64_t held = held_.load(std::memory_order_seq_cst);
    if (held == 0) [[likely]]
      return false;
    return options_.mode == FenceMode::kOn || (held & Bit(path_class)) != 0;
  }

  // The permit that a task has which came out with this note; kLocal: none.
  static uint8_t PermitOf(uint8_t note, bool shed) {
    if (!shed) return note;
    return (note & kShedWithPermit) != 0 ? static_cast<uint8_t>(note & ~kShedWithPermit) : kLocal;
  }

  // When a refused request may be worth another attempt: as long as the first of the queue waits.
  uint32_t retry_after_ms(uint8_t path_class) const {
    return states_[path_class].retry_after_ms.load(std::memory_order_relaxed);
  }
  // Its permits now, kOn: at most; 0: it needs none.
  uint32_t share(uint8_t path_class) const {
    return states_[path_class].share.load(std::memory_order_relaxed);
  }
  // All that the order counts; without the name, the methods, `late` and `no_credit`.
  FenceClassStats Sample(uint8_t path_class) const;

 private:
  template <class Permits>
  friend class FencedOrder;
  friend class DryRunOrder;
  friend class FenceLending;
  friend class FenceShares;

  struct alignas(64) State {
    // Atomic: requests that returned their permits. Any thread; see rule F5.
    std::atomic<uint64_t> ended{0};
    // Atomic: the turn of lending.h. Written by the order before the requests that can end it.
    std::atomic<uint64_t> turn_ends{0};  // relaxed: `ended` then; 0: no turn yet
    std::atomic<int64_t> turn_began{0};  // relaxed: nanoseconds
    std::atomic<int64_t> turn_took{0};   // the one who ends it releases it; 0: it goes on
    // Atomic, relaxed: written by any thread, published by version_.
    std::atomic<uint32_t> limit{kNoLimit};
    // Atomic, relaxed: written under the executor's mutex, read for statistics.
    std::atomic<uint32_t> share{0};
    std::atomic<uint32_t> waiting{0};
    std::atomic<uint32_t> retry_after_ms{0};
    std::atomic<uint64_t> begun{0};
    std::atomic<uint64_t> queued{0};
    std::atomic<uint64_t> refused{0};
    std::atomic<uint64_t> borrowed{0};
    std::atomic<uint64_t> shed{0};
  };

  // Notes how long the turn took.
  [[gnu::cold]] void EndTurn(State& state) const;
  // For a counter with one writer at a time.
  static void Count(std::atomic<uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Under the executor's mutex. Requests may end meanwhile.
  uint64_t InUse(uint8_t path_class) const {
    const State& state = states_[path_class];
    return state.begun.load(std::memory_order_relaxed) - state.ended.load(std::memory_order_seq_cst);
  }

  // Immutable after construction.
  const FenceOptions options_;
  const std::unique_ptr<FenceMeter> meter_;
  const TimeSource& time_;

  std::array<State, kMaxClasses> states_;
  // Atomic: classes with requests held back, as bits. Written by the order; see rule F5.
  std::atomic<uint64_t> held_{0};
  // Atomic: release after a change of a limit or of present_, acquire in FenceShares::Refresh().
  std::atomic<uint32_t> version_{1};
  std::atomic<uint64_t> present_{0};  // relaxed; published by version_
  std::atomic<uint32_t> permits_{1};  // relaxed: written under the executor's mutex
};

}  // namespace curtail
