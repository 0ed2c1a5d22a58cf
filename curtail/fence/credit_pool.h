// SPDX-License-Identifier: Apache-2.0
//
// credit_pool.h - the requests that clients of a server may have open, by the wait of its queue.
//
// The control of Breakwater (I. Cho et al., OSDI 2020), except that an answer tells a client how
// many credits it has, and not how many it gains: one that is lost changes nothing. The rules:
//
//  B1  A credit is the right to have one request open. The server has a pool of them, and each
//      connection an account.
//  B2  The pool changes once an interval; the first interval begins with the first request. It
//      grows by one credit if the requests that threads took had waited for no more than the target
//      on average; by more with thousands of accounts. Else it shrinks by 2 % for each target that
//      they waited longer, by half at most. An interval in which no thread took a request changes
//      nothing.
//  B3  The pool has `floor` credits at least, and kMostOfAccount for each account at most.
//  B4  An account is settled when a request of it is answered. While credits are left
//      it gets what it has open, what its client says that waits, and its share of those left. It
//      gains no more than are left. With too many given out it loses one.
//  B5  An account keeps what it has open, one credit at least, and has kMostOfAccount at most,
//      whatever its client says.
//  B6  Answers are on their way for a while. So a client may have open the most that it was told,
//      less one for each answer since, in the order in which answers leave. That is not the order
//      of B4, as a long answer waits for its turn while shorter ones pass. An answer that crosses
//      the cancellation of its call is not heard; its client may then have a request refused.
//  B7  A client that knows no credits is held to its account here: a request beyond it is refused.
//      Its account is settled when a request comes, too.
//  B8  A request that has waited for more than twice the target is refused when its turn comes.
//
// Thread safety: a pool is thread-safe, and no method blocks. One thread at a time has an account.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"

namespace curtail {

enum class AdmissionMode : uint8_t {
  kOff,      // whoever comes is queued
  kCredits,  // clients have credits
};

// "off", "credits"; empty for other texts.
std::optional<AdmissionMode> ParseAdmissionMode(std::string_view text);

struct AdmissionOptions {
  AdmissionMode mode = AdmissionMode::kOff;
  // The wait in the queue that the pool aims at. Raise for handlers that take longer: a few
  // requests' time, and 40 % of the time that a client waits at most.
  Nanos target = std::chrono::milliseconds(5);
  // Raise if answers take longer than this.
  Nanos interval = std::chrono::milliseconds(5);

  bool credits() const { return mode == AdmissionMode::kCredits; }
  // INVALID_ARGUMENT for a target or an interval that is not above zero.
  absl::Status Check() const;
};

// The credits of a server.
struct CreditStats {
  uint32_t total = 0;     // in the pool
  int64_t issued = 0;     // to accounts
  uint32_t accounts = 0;  // of connections
};

// A CreditPool belongs to one server. It outlives its accounts.
class CreditPool {
 public:
  static constexpr uint32_t kMostOfAccount = 256;

  // REQUIRES: floor > 0.
  CreditPool(const AdmissionOptions& options, uint32_t floor)
      : options_(options), floor_(floor), total_(floor) {}
  CreditPool(const CreditPool&) = delete;
  CreditPool& operator=(const CreditPool&) = delete;

  // A thread took a request at `now` that had `waited`. Returns false if it waited too long (B8).
  [[nodiscard]] bool Taken(Nanos waited, TimePoint now);
  CreditStats Sample() const;

 private:
  friend class CreditAccount;

  static constexpr int64_t kNotBegun = 0;

  // Ends an interval (B2).
  void Adjust();
  int64_t Left() const {
    return static_cast<int64_t>(total_.load(std::memory_order_relaxed)) -
           issued_.load(std::memory_order_relaxed);
  }

  // Immutable after construction.
  const AdmissionOptions options_;
  const uint32_t floor_;

  // Atomic, relaxed: each is a number by itself. The thread that moves end_ ends the interval.
  std::atomic<uint32_t> total_;
  std::atomic<int64_t> issued_{0};
  std::atomic<uint32_t> accounts_{0};
  std::atomic<int64_t> end_{kNotBegun};  // of the interval
  std::atomic<int64_t> wait_{0};
  std::atomic<uint32_t> taken_{0};
};

// A CreditAccount belongs to one connection. Thread-compatible.
class CreditAccount {
 public:
  // The requests that a client may have open before it has heard of credits.
  static constexpr uint32_t kFirst = 4;

  explicit CreditAccount(CreditPool* pool) : pool_(*pool) {
    pool_.accounts_.fetch_add(1, std::memory_order_relaxed);
  }
  ~CreditAccount() {
    pool_.issued_.fetch_sub(credits_, std::memory_order_relaxed);
    pool_.accounts_.fetch_sub(1, std::memory_order_relaxed);
  }
  CreditAccount(const CreditAccount&) = delete;
  CreditAccount& operator=(const CreditAccount&) = delete;

  // A request came. `demand`: requests that, by its client's word, wait behind it; nothing: it
  // knows no credits. Returns false if it has no credit. Otherwise Ended() follows.
  [[nodiscard]] bool Open(std::optional<uint32_t> demand);
  // One that is open is being answered: settles the account. Returns the credits that its answer
  // tells.
  uint32_t Settle();
  // One that was open has ended. `told`: its answer leaves, and tells of so many credits; 0: none
  // leaves, or it tells nothing.
  void Ended(uint32_t told) {
    --open_;
    if (told > 0) allowed_ = std::max(told, allowed_ - 1);
  }
  // A request that Open() refused is answered at once. Returns the credits that its answer tells.
  uint32_t Refused() {
    const uint32_t told = std::max(credits_, 1u);
    allowed_ = std::max(allowed_, told);
    return told;
  }

  uint32_t open() const { return open_; }
  uint32_t credits() const { return credits_; }

 private:
  void Settle(uint32_t pending, uint32_t demand);

  CreditPool& pool_;
  uint32_t open_ = 0;
  uint32_t credits_ = 0;
  uint32_t allowed_ = kFirst;  // B6
  uint32_t demand_ = 0;        // as told last
};

// The number that a client or a server says of its credits; nothing if `text` is not a whole
// number. More than kMostOfAccount counts as that.
std::optional<uint32_t> ParseCredits(std::string_view text);

}  // namespace curtail
