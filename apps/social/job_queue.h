// SPDX-License-Identifier: Apache-2.0
//
// job_queue.h - a queue on disk, from which one thread takes the jobs behind the backs of those who put them there.
//
// An acknowledged job is a row. The thread takes rows in their order, and deletes a row when its job is done. So a job is
// done at least once, whatever dies in between. A job that fails is tried again later; the others go on, and may overtake
// it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "curtail/exec/parker.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "curtail/store/sql/sql.h"
#include "timelines.pb.h"

namespace curtail::social {

// How long one attempt at a job may take.
inline constexpr Nanos kJobTime = std::chrono::seconds(5);

// A JobQueue is thread-safe.
class JobQueue {
 public:
  struct Job {
    uint64_t id = 0;
    int64_t attempts = 0;
    std::string bytes;
    bool done = false;
  };
  // Attempts jobs, 1 to `group` of them in their order, and sets `done`. Runs on the queue's thread.
  using Attempt = std::function<void(std::span<Job> jobs)>;

  static const char kSchema[];
  // `db` outlives the queue.
  JobQueue(SqlDatabase& db, size_t group, Attempt attempt)
      : db_(db), group_(group), attempt_(std::move(attempt)) {}
  // Has `env` start the thread once all services can be called, and stop it before any is gone.
  void WorkWhileServing(Env& env);

  // Errors: RESOURCE_EXHAUSTED when a million jobs wait; those of SqlDatabase.
  Coroutine Put(Context& ctx, std::string bytes);
  Coroutine Look(Context& ctx, QueueState* state);

 private:
  void Work();
  std::vector<Job> TakeDue();
  // When there will be a job without news.
  Deadline NextDue();
  // Rows that cannot be settled now are attempted again.
  void Settle(const std::vector<Job>& jobs);

  // Immutable after construction.
  SqlDatabase& db_;
  const size_t group_;
  const Attempt attempt_;

  Parker news_;  // the thread waits; notified by Put() and at the end
  // Atomic: set at the end (release), read by the thread (acquire).
  std::atomic<bool> stopping_{false};
  // Atomic; relaxed, statistics.
  std::atomic<uint64_t> delivered_{0}, failed_{0};
  std::thread thread_;
};

}  // namespace curtail::social
