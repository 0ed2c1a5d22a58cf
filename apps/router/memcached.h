// SPDX-License-Identifier: Apache-2.0
//
// memcached.h - a client of one memcached for handlers: a pool of connections, and writes that cannot land
// late.
//
// A write that was sent whole and not answered in time may still be carried out, whatever is done here:
// memcached reads what lies in its sockets. So its connection is kept aside, and until it has been answered
// or closed other writes and flushes are refused. What was sent in part only memcached drops with the
// connection.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "apps/router/connection.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/sync.h"

namespace curtail::router {

struct MemcachedOptions {
  // At once; in fiber models from each thread. memcached's own limit (-c) is 1,024 by default.
  int connections = 64;
};

// A Memcached connects on first use, and again when memcached was restarted. Thread-safe; every call waits as
// the threading model in force waits, and until `deadline` at most. Errors of all calls: UNAVAILABLE (cannot
// be reached, is gone, answers what was not asked, or has not answered an earlier write yet),
// DEADLINE_EXCEEDED.
class Memcached {
 public:
  explicit Memcached(Address address, MemcachedOptions options = {});
  // REQUIRES: no call is in progress.
  ~Memcached();
  Memcached(const Memcached&) = delete;
  Memcached& operator=(const Memcached&) = delete;

  const std::string& address() const { return address_.text; }

  // REQUIRES, of all: key and value pass CheckKey() and CheckValue().
  [[nodiscard]] absl::Status Get(std::string_view key, Deadline deadline, bool* found, std::string* value);
  // `stored` is false only if `if_absent` and there is such a key. Further errors: INVALID_ARGUMENT (larger
  // than memcached takes, see its -I), RESOURCE_EXHAUSTED (it has no memory). After both the key is gone.
  [[nodiscard]] absl::Status Set(std::string_view key, std::string_view value, bool if_absent,
                                 Deadline deadline, bool* stored);
  [[nodiscard]] absl::Status Delete(std::string_view key, Deadline deadline, bool* found);
  // Forgets everything.
  [[nodiscard]] absl::Status Flush(Deadline deadline);
  // Whether it answers. Afterwards lost() is up to date.
  [[nodiscard]] absl::Status Check(Deadline deadline);
  // The time, as a version, at which a connection was last found closed: memcached may have been started again, empty.
  // 0: never.
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  // The idle connections of one poller's thread, or of all threads that are no fiber threads.
  struct Pool {
    std::shared_ptr<Poller> poller;  // null: for threads
    FiberMutex mu;
    FiberCondition freed;
    std::vector<std::unique_ptr<Connection>> idle;  // guarded by mu; the one used last is taken first
    int open = 0;                                   // guarded by mu: idle or in use
  };
  struct Command {
    std::string_view head, body, tail;
    bool writes = false;
    // What answers it, beside a refusal.
    Answer::Kind yes = Answer::Kind::kDone, no = Answer::Kind::kDone;
  };
  class Lease;

  Pool& PoolOfCaller();
  absl::Status Run(const Command& command, Deadline deadline, Answer* answer, Lease* lease);
  // One try; sets `again` when a pooled connection turned out to be closed, so that a fresh one is worth a
  // try.
  absl::Status RunOnce(const Command& command, Deadline deadline, Answer* answer, Lease* lease, bool* again);
  // UNAVAILABLE while an earlier write may still be carried out.
  absl::Status CheckNoneUnanswered();
  void KeepAside(std::unique_ptr<Connection> connection);
  absl::Status Refused(const Answer& answer) const;

  // Immutable after construction.
  const Address address_;
  const MemcachedOptions options_;

  Mutex mu_;
  std::deque<Pool> pools_ CURTAIL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Connection>> unanswered_ CURTAIL_GUARDED_BY(mu_);
  // Atomic; unanswered_ is not empty. Relaxed: a write and what it must not overtake are ordered by the
  // caller's lock.
  std::atomic<bool> any_unanswered_{false};
  // Atomic; relaxed, a time.
  std::atomic<uint64_t> lost_{0};
};

}  // namespace curtail::router
