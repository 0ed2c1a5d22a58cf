// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. An acknowledged job is an entry of a stream, and the consumers of one group share the stream. Redis keeps
// which entry was given to which consumer, and since when: an entry is pending until it is deleted, as its job is done.
//
//  - A look takes three things in one round trip: entries that no consumer has; own ones that failed, after a pause;
//    those of a consumer that is gone or stands still, after the lease.
//  - Jobs fail when a service is away, so the pause is one for all of them. It grows while nothing succeeds.
//  - What is done is deleted first, and then no longer pending. Redis drops pending entries that are deleted.
//  - The length has its limit within Redis, where adding and counting are one step. Nothing that waits is trimmed.
#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "apps/kit/data/redis_sets.h"
#include "apps/kit/jobs/job_store.h"
#include "apps/kit/jobs/pauses.h"
#include "curtail/base/strings.h"
#include "curtail/store/redis/redis.h"

namespace curtail::apps {
namespace {

constexpr char kGroup[] = "workers", kField[] = "job";
// Three such parts of a look fit in a reply of 16 MiB.
constexpr char kJobsOfPart[] = "64";
// Other consumers, and producers in other processes, send no news.
constexpr Nanos kLook = std::chrono::seconds(1);

constexpr char kAdd[] =
    "if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then"
    " return redis.error_reply('OOM the queue is full') end "
    "return redis.call('XADD', KEYS[1], '*', ARGV[2], ARGV[3])";

std::string Millis(Nanos time) {
  return Join(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

absl::Status Strange() { return absl::DataLossError("a queue in Redis is damaged"); }

// Appends [[id, [field, value]], ...]; nulls are entries that were deleted.
absl::Status AppendJobs(const RedisReply& entries, std::vector<Job>* jobs) {
  for (const RedisReply& entry : entries.elements) {
    if (entry.null()) continue;
    if (entry.elements.size() != 2 || entry.elements[1].elements.size() != 2) return Strange();
    jobs->push_back({.id = entry.elements[0].text, .bytes = entry.elements[1].elements[1].text});
  }
  return absl::OkStatus();
}

class RedisJobs final : public JobStore {
 public:
  RedisJobs(StoreAddress address, std::string key, std::string consumer, Nanos lease, uint64_t most)
      : redis_(std::move(address)),
        key_(std::move(key)),
        consumer_(std::move(consumer)),
        lease_(lease),
        most_(most) {}

  Coroutine Put(Context& ctx, std::string bytes) override {
    RedisBatch batch;
    batch.Add({"EVAL", kAdd, "1", key_, Join(most_), kField, bytes});
    return RunAll(redis_, std::move(batch), ctx.deadline());
  }

  Coroutine Count(Context& ctx, uint64_t* jobs) override {
    RedisBatch batch;
    batch.Add({"XLEN", key_});
    const absl::StatusOr<RedisReply> length = co_await RunOne(redis_, std::move(batch), ctx.deadline());
    if (length.ok()) *jobs = static_cast<uint64_t>(length->integer);
    co_return length.status();
  }

  absl::Status Take(std::vector<Job>* jobs) override;
  absl::Status Settle(std::span<const Job> jobs) override;
  Deadline NextLook() override { return Deadline::In(failing_ ? PauseAfter(failures_) : kLook); }

 private:
  // Appends own jobs that failed, of XPENDING's reply.
  absl::Status TakeAgain(const RedisReply& pending, std::vector<Job>* jobs);

  Redis redis_;
  // Immutable.
  const std::string key_, consumer_;
  const Nanos lease_;
  const uint64_t most_;

  // Owned by the queue's thread.
  std::string cursor_ = "0-0";  // where the look at the jobs of others goes on
  int64_t failures_ = 0;        // since a job was done
  bool failing_ = false;        // the last attempts failed
};

absl::Status RedisJobs::Take(std::vector<Job>* jobs) {
  RedisBatch batch;
  batch.Add({"XGROUP", "CREATE", key_, kGroup, "0", "MKSTREAM"});
  batch.Add({"XAUTOCLAIM", key_, kGroup, consumer_, Millis(lease_), cursor_, "COUNT", kJobsOfPart});
  batch.Add(
      {"XPENDING", key_, kGroup, "IDLE", Millis(PauseAfter(failures_)), "-", "+", kJobsOfPart, consumer_});
  batch.Add({"XREADGROUP", "GROUP", kGroup, consumer_, "COUNT", kJobsOfPart, "STREAMS", key_, ">"});
  const auto replies = redis_.Run(batch, Deadline::In(kJobTime));
  if (!replies.ok()) return replies.status();
  absl::Status status = (*replies)[0].status();
  if (absl::IsAlreadyExists(status)) status = absl::OkStatus();
  for (const RedisReply& reply : std::span(*replies).subspan(1)) status.Update(reply.status());
  if (!status.ok()) return status;

  const std::vector<RedisReply>& claimed = (*replies)[1].elements;  // [cursor, entries, deleted ids]
  if (claimed.size() < 2) return Strange();
  cursor_ = claimed[0].text;
  status = AppendJobs(claimed[1], jobs);
  if (status.ok()) status = TakeAgain((*replies)[2], jobs);
  for (const RedisReply& stream : (*replies)[3].elements) {  // [[key, entries]], or null
    if (stream.elements.size() != 2) return Strange();
    status.Update(AppendJobs(stream.elements[1], jobs));
  }
  return status;
}

absl::Status RedisJobs::TakeAgain(const RedisReply& pending, std::vector<Job>* jobs) {
  if (pending.elements.empty()) return absl::OkStatus();
  const std::string pause = Millis(PauseAfter(failures_));
  std::vector<std::string_view> words = {"XCLAIM", key_, kGroup, consumer_, pause};
  for (const RedisReply& entry : pending.elements) {  // [id, consumer, idle, deliveries]
    if (entry.elements.empty()) return Strange();
    words.push_back(entry.elements[0].text);
  }
  RedisBatch batch;
  batch.Add(words);
  const auto replies = redis_.Run(batch, Deadline::In(kJobTime));
  if (!replies.ok()) return replies.status();
  if (absl::Status refused = replies->front().status(); !refused.ok()) return refused;
  return AppendJobs(replies->front(), jobs);
}

absl::Status RedisJobs::Settle(std::span<const Job> jobs) {
  std::vector<std::string_view> removed = {"XDEL", key_}, known = {"XACK", key_, kGroup};
  for (const Job& job : jobs) {
    if (job.done) removed.push_back(job.id), known.push_back(job.id);
  }
  const bool any_done = removed.size() > 2;
  failing_ = std::ranges::any_of(jobs, [](const Job& job) { return !job.done; });
  failures_ = any_done || !failing_ ? 0 : failures_ + 1;
  if (!any_done) return absl::OkStatus();
  RedisBatch batch;
  batch.Add(removed);
  batch.Add(known);
  const auto replies = redis_.Run(batch, Deadline::In(kJobTime));
  absl::Status status = replies.status();
  if (status.ok()) status.Update((*replies)[0].status()), status.Update((*replies)[1].status());
  return status;
}

}  // namespace

std::unique_ptr<JobStore> MakeRedisJobs(StoreAddress address, std::string key, std::string consumer,
                                        Nanos lease, uint64_t most) {
  return std::make_unique<RedisJobs>(std::move(address), std::move(key), std::move(consumer), lease, most);
}

}  // namespace curtail::apps
