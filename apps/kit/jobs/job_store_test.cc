// SPDX-License-Identifier: Apache-2.0
//
// Jobs in a file and in a real Redis: none is lost, whatever becomes of those that took them.
#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "apps/kit/jobs/job_store.h"
#include "apps/kit/run_here.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/redis/redis.h"
#include "curtail/store/store_testing.h"

namespace curtail::apps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

enum class JobsIn { kFile, kRedis };

absl::Status Put(JobStore& store, std::string bytes) {
  Context ctx(kMaxTestWait);
  return RunHere(store.Put(ctx, std::move(bytes)));
}

uint64_t Count(JobStore& store) {
  Context ctx(kMaxTestWait);
  uint64_t jobs = 0;
  const absl::Status status = RunHere(store.Count(ctx, &jobs));
  EXPECT_TRUE(status.ok()) << status;
  return jobs;
}

// At least one, with its bytes.
std::vector<Job> Take(JobStore& store) {
  const Deadline deadline = Deadline::In(kMaxTestWait);
  std::vector<Job> jobs;
  while (jobs.empty() && !deadline.Expired()) {
    const absl::Status status = store.Take(&jobs);
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_FALSE(jobs.empty());
  return jobs;
}

void Settle(JobStore& store, std::vector<Job> jobs, bool done) {
  for (Job& job : jobs) job.done = done, ++job.attempts;
  const absl::Status status = store.Settle(jobs);
  EXPECT_TRUE(status.ok()) << status;
}

std::vector<std::string> BytesOf(const std::vector<Job>& jobs) {
  std::vector<std::string> bytes;
  for (const Job& job : jobs) bytes.push_back(job.bytes);
  return bytes;
}

class JobStoreTest : public testing::TestWithParam<JobsIn> {
 protected:
  std::unique_ptr<JobStore> Open() {
    if (GetParam() == JobsIn::kFile) {
      db_ = *OpenData({.folder = dir_.File("data"), .no_sync = true}, "test", {kJobSchema});
      return MakeSqlJobs(db_.get());
    }
    redis_.emplace(dir_.File("redis"));
    return MakeRedisJobs(*StoreAddress::Parse(redis_->address()), "test", "a");
  }

  TempDir dir_;
  std::unique_ptr<SqlDatabase> db_;
  std::optional<RedisProcess> redis_;
  const std::unique_ptr<JobStore> store_ = Open();
};

TEST_P(JobStoreTest, GivesJobsInTheirOrderUntilTheyAreDone) {
  const std::string bytes("a\0\r\n\xff", 5);
  std::vector<Job> none;
  ASSERT_TRUE(store_->Take(&none).ok());
  EXPECT_THAT(none, IsEmpty());
  EXPECT_FALSE(store_->NextLook().infinite()) << "another process may put some";
  ASSERT_TRUE(Put(*store_, bytes).ok());
  ASSERT_TRUE(Put(*store_, "second").ok());
  std::vector<Job> jobs = Take(*store_);
  ASSERT_THAT(BytesOf(jobs), ElementsAre(bytes, "second"));
  EXPECT_EQ(Count(*store_), 2u);
  jobs[0].done = true;
  Settle(*store_, {jobs[0]}, /*done=*/true);
  Settle(*store_, {jobs[1]}, /*done=*/false);
  EXPECT_EQ(Count(*store_), 1u);
  jobs = Take(*store_);  // after a pause
  EXPECT_THAT(BytesOf(jobs), ElementsAre("second"));
  Settle(*store_, jobs, /*done=*/true);
  EXPECT_EQ(Count(*store_), 0u);
}

// Those that fail are no obstacle, however many.
TEST_P(JobStoreTest, JobsThatFailLeaveTheOthersTheirTurn) {
  std::set<std::string> others;
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Put(*store_, "fails").ok());
  for (int i = 0; i < 100; ++i) {
    others.insert(Join("other ", i));
    ASSERT_TRUE(Put(*store_, Join("other ", i)).ok());
  }
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!others.empty()) {
    ASSERT_FALSE(deadline.Expired()) << others.size();
    std::vector<Job> jobs = Take(*store_);
    for (Job& job : jobs) {
      job.done = job.bytes != "fails";
      if (job.done) others.erase(job.bytes);
      ++job.attempts;
    }
    const absl::Status status = store_->Settle(jobs);
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(Count(*store_), 200u);
}

TEST(SqlJobsTest, TakesAsManyAsMayWait) {
  const TempDir dir;
  const auto db = OpenData({.folder = dir.File("data"), .no_sync = true}, "test", {kJobSchema});
  ASSERT_TRUE(db.ok()) << db.status();
  const auto store = MakeSqlJobs(db->get(), /*most=*/2);
  for (const char* job : {"fails", "2"}) ASSERT_TRUE(Put(*store, job).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Put(*store, "3")));
  for (const char* next : {"3", "4", "5"}) {
    std::vector<Job> jobs = Take(*store);
    ASSERT_EQ(jobs.size(), 2u);
    jobs.erase(jobs.begin());
    Settle(*store, std::move(jobs), /*done=*/true);
    EXPECT_TRUE(Put(*store, next).ok()) << "the first job is far before it";
    EXPECT_TRUE(absl::IsResourceExhausted(Put(*store, "more")));
  }
}

TEST(SqlJobsTest, AClockThatWasAheadDoesNotDelayAJob) {
  const TempDir dir;
  const auto db = OpenData({.folder = dir.File("data"), .no_sync = true}, "test", {kJobSchema});
  ASSERT_TRUE(db.ok()) << db.status();
  const auto store = MakeSqlJobs(db->get());
  ASSERT_TRUE(Put(*store, "one").ok());
  Settle(*store, Take(*store), /*done=*/false);
  // As if the job had failed while the clock was an hour ahead.
  const absl::Status ahead = (*db)->Write(Deadline::In(kMaxTestWait), [](SqlSession& s) {
    return s.Execute("UPDATE jobs SET due_ms = due_ms + 3600000", {});
  });
  ASSERT_TRUE(ahead.ok()) << ahead;
  EXPECT_LT(store->NextLook().Remaining(), std::chrono::seconds(1));
  std::vector<Job> jobs;
  ASSERT_TRUE(store->Take(&jobs).ok());
  EXPECT_THAT(BytesOf(jobs), ElementsAre("one"));
}

INSTANTIATE_TEST_SUITE_P(Stores, JobStoreTest, testing::Values(JobsIn::kFile, JobsIn::kRedis),
                         [](const auto& info) { return info.param == JobsIn::kFile ? "File" : "Redis"; });

class RedisJobsTest : public testing::Test {
 protected:
  std::unique_ptr<JobStore> Open(std::string consumer, Nanos lease = kLeaseTime) {
    return MakeRedisJobs(*StoreAddress::Parse(redis_.address()), "jobs", std::move(consumer), lease);
  }

  TempDir dir_;
  RedisProcess redis_{dir_.File("r"),
                      {"--appendonly", "yes", "--appendfsync", "always", "--dir", dir_.File(".")}};
};

TEST_F(RedisJobsTest, JobsOfAConsumerThatStandsStillAreTakenOver) {
  const auto stalled = Open("a"), other = Open("b", std::chrono::milliseconds(1));
  ASSERT_TRUE(Put(*stalled, "one").ok());
  const std::vector<Job> taken = Take(*stalled);
  const std::vector<Job> claimed = Take(*other);
  EXPECT_THAT(BytesOf(claimed), ElementsAre("one"));
  Settle(*other, claimed, /*done=*/true);
  Settle(*stalled, taken, /*done=*/true);  // it goes on, and has done the job a second time
  EXPECT_EQ(Count(*other), 0u);
  std::vector<Job> none;
  ASSERT_TRUE(stalled->Take(&none).ok());
  EXPECT_THAT(none, IsEmpty());
}

TEST_F(RedisJobsTest, AConsumerThatIsStartedAgainHasItsJobs) {
  ASSERT_TRUE(Put(*Open("a"), "one").ok());
  EXPECT_THAT(BytesOf(Take(*Open("a"))), ElementsAre("one"));
  redis_.Kill();
  std::vector<Job> jobs;
  EXPECT_TRUE(absl::IsUnavailable(Open("a")->Take(&jobs)));
  EXPECT_TRUE(absl::IsUnavailable(Put(*Open("a"), "two")));
  redis_.Start();
  EXPECT_THAT(BytesOf(Take(*Open("a"))), ElementsAre("one"));
}

TEST_F(RedisJobsTest, RefusesMoreThanTheQueueHolds) {
  const RedisProcess in_memory(dir_.File("m"));
  const StoreAddress address = *StoreAddress::Parse(in_memory.address());
  Redis redis(address);
  const auto fill = redis.Run({"EVAL",
                               "for i = 1, tonumber(ARGV[1]) do"
                               " redis.call('XADD', KEYS[1], '*', 'job', 'x') end",
                               "1", "jobs", Join(kMostJobs)},
                              Deadline::In(kMaxTestWait));
  ASSERT_TRUE(fill.ok()) << fill.status();
  const auto store = MakeRedisJobs(address, "jobs", "a");
  const absl::Status full = Put(*store, "one too many");
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  Settle(*store, Take(*store), /*done=*/true);
  EXPECT_TRUE(Put(*store, "one").ok());
}

TEST_F(RedisJobsTest, ADamagedQueueIsAnError) {
  Redis redis(*StoreAddress::Parse(redis_.address()));
  const auto store = Open("a");
  ASSERT_TRUE(Put(*store, "one").ok());
  ASSERT_TRUE(redis.Run({"XADD", "jobs", "*", "a", "b", "c", "d"}, Deadline::In(kMaxTestWait)).ok());
  std::vector<Job> jobs;
  EXPECT_TRUE(absl::IsDataLoss(store->Take(&jobs)));
  ASSERT_TRUE(redis.Run({"SET", "jobs", "no stream"}, Deadline::In(kMaxTestWait)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store->Take(&jobs)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Put(*store, "one")));
}

}  // namespace
}  // namespace curtail::apps
