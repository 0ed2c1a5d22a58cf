// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/jobs/job_queue.h"

#include <algorithm>

#include "curtail/base/strings.h"

namespace curtail::apps {

void JobQueue::WorkWhileServing(Env& env) {
  env.WhileServing([this] { thread_ = std::thread([this] { Work(); }); },
                   [this] {
                     stopping_.store(true, std::memory_order_release);
                     news_.Notify();
                     thread_.join();
                   });
}

Coroutine JobQueue::Put(Context& ctx, std::string bytes) {
  if (bytes.size() > kMostJobBytes)
    co_return absl::InvalidArgumentError(Join("a job has at most ", kMostJobBytes, " bytes"));
  absl::Status status = co_await store_->Put(ctx, std::move(bytes));
  if (status.ok()) news_.Notify();
  co_return status;
}

void JobQueue::Work() {
  constexpr Nanos kPauseOfStore = std::chrono::milliseconds(50);
  while (!stopping_.load(std::memory_order_acquire)) {
    const uint32_t ticket = news_.Ticket();
    std::vector<Job> jobs;
    absl::Status status = store_->Take(&jobs);
    if (status.ok() && jobs.empty()) {
      news_.Wait(ticket, store_->NextLook());
    } else if (status.ok()) {
      status = store_->Settle(std::span(jobs).first(AttemptAll(jobs)));
      // The same jobs come again, as of a store that can be read and not written.
      if (!status.ok()) failed_.fetch_add(1, std::memory_order_relaxed);
    }
    if (!status.ok()) news_.Wait(ticket, Deadline::In(kPauseOfStore));
  }
}

size_t JobQueue::AttemptAll(std::span<Job> jobs) {
  const Deadline last = Deadline::In(kJobTime);
  size_t begin = 0;
  while (begin < jobs.size() && !stopping_.load(std::memory_order_acquire) && !last.Expired()) {
    const std::span<Job> group = jobs.subspan(begin, std::min(group_, jobs.size() - begin));
    attempt_(group);
    for (Job& job : group) {
      ++job.attempts;
      (job.done ? delivered_ : failed_).fetch_add(1, std::memory_order_relaxed);
    }
    begin += group.size();
  }
  return begin;
}

absl::StatusOr<std::unique_ptr<JobStore>> OpenJobs(Env& env, const DataOptions& data,
                                                   std::string_view service, uint64_t most) {
  if (const std::vector<std::string>& redis = env.Store("redis"); !redis.empty()) {
    auto address = StoreAddress::Parse(redis.front());
    if (!address.ok()) return address.status();
    return MakeRedisJobs(*std::move(address), Join(service, ":jobs"), Join("shard-", env.shard().index),
                         kLeaseTime, most);
  }
  const auto db = OpenData(env, data, service, {kJobSchema});
  if (!db.ok()) return db.status();
  return MakeSqlJobs(*db, most);
}

}  // namespace curtail::apps
