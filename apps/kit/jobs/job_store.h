// SPDX-License-Identifier: Apache-2.0
//
// job_store.h - where the jobs of a queue are kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/kit/data/data.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "curtail/store/address.h"
#include "curtail/store/sql/sql.h"

namespace curtail::apps {

// How long one attempt at a job may take.
inline constexpr Nanos kJobTime = std::chrono::seconds(5);
// Another consumer takes a job over that was taken, and is not done, for so long. Attempts at jobs begin within one
// kJobTime, and end within two.
inline constexpr Nanos kLeaseTime = 3 * kJobTime;

inline constexpr uint64_t kMostJobs = 1'000'000;
inline constexpr size_t kMostJobBytes = 64 << 10;

struct Job {
  std::string id;  // of the store
  int64_t attempts = 0;
  std::string bytes;
  bool done = false;
};

// A JobStore holds jobs from their acknowledgement until they are done. Put() and Count() are thread-safe, the rest is
// for the thread of one queue, and may block for kJobTime.
class JobStore {
 public:
  virtual ~JobStore() = default;

  // REQUIRES: at most kMostJobBytes. Errors: RESOURCE_EXHAUSTED: too many wait. The store's own.
  virtual Coroutine Put(Context& ctx, std::string bytes) = 0;
  virtual Coroutine Count(Context& ctx, uint64_t* jobs) = 0;

  // Appends jobs that are due; at most some hundred.
  virtual absl::Status Take(std::vector<Job>* jobs) = 0;
  // Forgets jobs that are done. The others, and all after an error, will be due again.
  virtual absl::Status Settle(std::span<const Job> jobs) = 0;
  // When to look for due jobs without news of one.
  virtual Deadline NextLook() = 0;
};

// In an SQLite file that has kJobSchema, and outlives the store. `most` jobs wait at most.
extern const char kJobSchema[];
std::unique_ptr<JobStore> MakeSqlJobs(SqlDatabase* db, uint64_t most = kMostJobs);
// In a Redis: the stream `key`, which the consumers of one group share. `consumer` names this one, and a process that
// is started in its place. Jobs of one that is gone, or stands still, are taken over after `lease`.
std::unique_ptr<JobStore> MakeRedisJobs(StoreAddress address, std::string key, std::string consumer,
                                        Nanos lease = kLeaseTime, uint64_t most = kMostJobs);
// For a service: in the Redis `redis`, if there is one, else in its file.
absl::StatusOr<std::unique_ptr<JobStore>> OpenJobs(Env& env, const DataOptions& data,
                                                   std::string_view service, uint64_t most = kMostJobs);

}  // namespace curtail::apps
