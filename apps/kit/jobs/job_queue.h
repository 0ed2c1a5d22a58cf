// SPDX-License-Identifier: Apache-2.0
//
// job_queue.h - a queue from which one thread takes the jobs behind the backs of those who put them there.
//
// A job is done at least once, whatever dies in between. A job that fails is tried again later; the others go on, and
// may overtake it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "apps/kit/jobs/job_store.h"
#include "curtail/exec/parker.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"

namespace curtail::apps {

// A JobQueue is thread-safe.
class JobQueue {
 public:
  // Attempts jobs, 1 to `group` of them in their order, and sets `done`. Runs on the queue's thread.
  using Attempt = std::function<void(std::span<Job> jobs)>;

  JobQueue(std::unique_ptr<JobStore> store, size_t group, Attempt attempt)
      : store_(std::move(store)), group_(group), attempt_(std::move(attempt)) {}
  // Has `env` start the thread once all services can be called, and stop it before any is gone.
  void WorkWhileServing(Env& env);

  // Errors: INVALID_ARGUMENT for more than kMostJobBytes; those of JobStore.
  Coroutine Put(Context& ctx, std::string bytes);
  // Sets what `state`, a message, has of the queue: delivered, failed_attempts and waiting.
  template <class State>
  Coroutine Look(Context& ctx, State* state) {
    state->set_delivered(delivered_.load(std::memory_order_relaxed));
    state->set_failed_attempts(failed_.load(std::memory_order_relaxed));
    uint64_t waiting = 0;
    absl::Status status = co_await store_->Count(ctx, &waiting);
    state->set_waiting(waiting);
    co_return status;
  }

 private:
  void Work();
  // Returns how many were attempted, the first ones.
  size_t AttemptAll(std::span<Job> jobs);

  // Immutable after construction.
  const std::unique_ptr<JobStore> store_;
  const size_t group_;
  const Attempt attempt_;

  Parker news_;  // the thread waits; notified by Put() and at the end
  // Atomic: set at the end (release), read by the thread (acquire).
  std::atomic<bool> stopping_{false};
  // Atomic; relaxed, statistics.
  std::atomic<uint64_t> delivered_{0}, failed_{0};
  std::thread thread_;
};

}  // namespace curtail::apps
