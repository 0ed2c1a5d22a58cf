// SPDX-License-Identifier: Apache-2.0
//
// Gets, writes and refills driven by hand: what they do when replicas come and go between their steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "apps/router/leaf_service.h"
#include "apps/router/router_testing.h"
#include "apps/router/versions.h"
#include "apps/router/write.h"

namespace curtail::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

GetReply Found(const std::string& value) {
  GetReply reply;
  reply.set_found(true);
  reply.set_value(value);
  return reply;
}
GetReply Missed() { return {}; }

// Replicas of one shard without a server, so that an ejected one stays ejected.
class AttemptsTest : public testing::Test {
 protected:
  void Start(int replicas, Nanos patience = kPatience) {
    std::vector<Channel*> leaves;
    for (int i = 0; i < replicas; ++i) {
      leaves.push_back(&channels_.emplace_back(&client_, "unix:/nonexistent/" + std::to_string(i)));
    }
    const ReplicaOptions options{.replicas = replicas, .get_timeout = patience, .write_timeout = patience};
    auto set = ReplicaSet::Create(std::move(leaves), options);
    ASSERT_TRUE(set.ok()) << set.status();
    routing_.replicas = *std::move(set);
  }
  ReplicaSet& replicas() { return *routing_.replicas; }

  // Asks the next replica, which has to be `replica`.
  void Ask(GetAttempts& attempts, size_t replica, const absl::StatusOr<GetReply>& answer) {
    ASSERT_TRUE(attempts.Next());
    ASSERT_EQ(attempts.channels()[0], &channels_[replica]);
    attempts.Take(Answers<GetReply>({answer}), &reply_);
  }

  Client client_;
  std::deque<Channel> channels_;
  Routing routing_;
  Context ctx_{kPatience};
  GetReply reply_;
};

// The leaf refuses the version of a refill only where a flush has come after it.
TEST_F(AttemptsTest, ARefillLeavesOutWhoWasEjectedMeanwhile) {
  Start(3);
  GetAttempts attempts(routing_, ctx_, "k");
  Ask(attempts, 0, Missed());
  Ask(attempts, 1, Missed());
  Ask(attempts, 2, Found("v"));
  ASSERT_FALSE(attempts.Next());
  ASSERT_TRUE(attempts.Finish().ok());
  ASSERT_TRUE(attempts.WantsRefill());
  Refill refill(routing_, ctx_, attempts);
  ASSERT_TRUE(refill.Begin("k"));
  ASSERT_TRUE(replicas().Eject(0, "missed a write"));
  StoreSet request;
  ASSERT_TRUE(refill.TakeSource(Answers<GetReply>({Found("v")}), &request));
  EXPECT_EQ(request.value(), "v");
  EXPECT_TRUE(request.if_absent());
  EXPECT_THAT(std::vector(refill.channels().begin(), refill.channels().end()), ElementsAre(&channels_[1]));
}

TEST_F(AttemptsTest, ARefillThatNobodyIsLeftForIsNotMade) {
  Start(2);
  GetAttempts attempts(routing_, ctx_, "k");
  Ask(attempts, 0, Missed());
  Ask(attempts, 1, Found("v"));
  Refill refill(routing_, ctx_, attempts);
  ASSERT_TRUE(refill.Begin("k"));
  ASSERT_TRUE(replicas().Eject(0, "missed a write"));
  StoreSet request;
  EXPECT_FALSE(refill.TakeSource(Answers<GetReply>({Found("v")}), &request));
}

// It may have been ejected because it has missed a delete of this key.
TEST_F(AttemptsTest, ARefillDoesNotTakeFromAnEjectedReplica) {
  Start(2);
  GetAttempts attempts(routing_, ctx_, "k");
  Ask(attempts, 0, Missed());
  Ask(attempts, 1, Found("deleted"));
  ASSERT_TRUE(replicas().Eject(1, "missed a delete"));
  Refill refill(routing_, ctx_, attempts);
  EXPECT_FALSE(refill.Begin("k"));
}

// The answer waits for it.
TEST_F(AttemptsTest, ARefillTakesAQuarterOfTheTimeAtMost) {
  Start(2);
  GetAttempts attempts(routing_, ctx_, "k");
  Ask(attempts, 0, Missed());
  Ask(attempts, 1, Found("v"));
  Refill refill(routing_, ctx_, attempts);
  EXPECT_LE(refill.context().deadline(), Deadline::In(kPatience / 4));
}

TEST_F(AttemptsTest, AMissIsNotBelievedWhileAnotherReplicaFails) {
  Start(2);
  GetAttempts attempts(routing_, ctx_, "k");
  Ask(attempts, 0, Missed());
  Ask(attempts, 1, absl::ResourceExhaustedError("no memory"));
  EXPECT_FALSE(attempts.Next());
  const absl::Status status = attempts.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("leaf unix:/nonexistent/1: no memory"));
}

TEST_F(AttemptsTest, AMissIsBelievedWhenWhoFailedIsEjected) {
  Start(2);
  GetAttempts attempts(routing_, ctx_, "k");
  Ask(attempts, 0, Missed());
  Ask(attempts, 1, absl::UnavailableError("gone"));
  EXPECT_FALSE(replicas().IsAdmitted(1));
  EXPECT_FALSE(attempts.Next());
  EXPECT_TRUE(attempts.Finish().ok());
  EXPECT_FALSE(reply_.found());
}

TEST_F(AttemptsTest, AMissDoesNotEndTheRoundsWhileAnotherReplicaIsSlow) {
  Start(2, std::chrono::seconds(5));  // less than the client has
  GetAttempts attempts(routing_, ctx_, "k");
  Ask(attempts, 0, Missed());
  Ask(attempts, 1, absl::DeadlineExceededError("slow"));
  EXPECT_EQ(attempts.Finish().code(), absl::StatusCode::kDeadlineExceeded);
  Ask(attempts, 1, Found("v"));
  EXPECT_FALSE(attempts.Next());
  EXPECT_TRUE(attempts.Finish().ok());
  EXPECT_EQ(reply_.value(), "v");
}

TEST_F(AttemptsTest, NothingIsUnboundedForAClientWithoutADeadline) {
  for (const int count : {1, 2}) {
    SCOPED_TRACE(count);
    channels_.clear();
    Start(count);
    Context patient(Deadline::Infinite());
    GetAttempts attempts(routing_, patient, "k");
    ASSERT_TRUE(attempts.Next());
    EXPECT_LE(attempts.context().deadline(), Deadline::In(kPatience * 10));
    Write write(routing_, patient);
    ASSERT_TRUE(write.Begin("k").ok());
    ASSERT_TRUE(write.Next());
    EXPECT_LE(write.context().deadline(), Deadline::In(kPatience));
    routing_.replicas.reset();
  }
}

TEST_F(AttemptsTest, NobodyAskedIsNoSuccess) {
  Start(2);
  EXPECT_EQ(GetAttempts(routing_, ctx_, "k").Finish().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Write(routing_, ctx_).Finish().code(), absl::StatusCode::kUnavailable);
}

TEST_F(AttemptsTest, AWriteDoesNotWaitForItsTurnWhenTheClientHasGivenUp) {
  Start(2);
  const Stripes::Hold hold = routing_.stripes.TryTake(Stripes::Of(HashOf("k")));
  ASSERT_TRUE(hold);
  ctx_.Cancel();
  EXPECT_EQ(Write(routing_, ctx_).Begin("k").code(), absl::StatusCode::kCancelled);
  Context late(Deadline::At(TimePoint::min()));
  EXPECT_EQ(Write(routing_, late).Begin("k").code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(AttemptsTest, AVersionThatCannotBeIsNotBelieved) {
  Start(2);
  replicas().SawVersion(~uint64_t{0});
  const uint64_t before = replicas().NextVersion();
  EXPECT_LT(before, GreatestVersion());
  const uint64_t in_an_hour = before + uint64_t{3600} * 1'000'000'000;
  replicas().SawVersion(in_an_hour);
  EXPECT_EQ(replicas().NextVersion(), in_an_hour + 1);
}

// 1 missed the write and is ejected. The answer waits until 0 has it with a version greater than all that 1 has seen.
TEST_F(AttemptsTest, AWriteIsDoneAgainWhereItWasTakenWhenWhoMissedItHasBeenEjected) {
  Start(2);
  Write write(routing_, ctx_);
  ASSERT_TRUE(write.Begin("k").ok());
  ASSERT_TRUE(write.Next());
  const uint64_t other_write = replicas().NextVersion();
  write.Take(Answers<StoreReply>({StoreReply(), absl::UnavailableError("gone")}));
  EXPECT_FALSE(replicas().IsAdmitted(1));
  ASSERT_TRUE(write.Next());
  EXPECT_THAT(std::vector(write.channels().begin(), write.channels().end()), ElementsAre(&channels_[0]));
  EXPECT_GT(write.version(), other_write);
  StoreSet request;
  write.Address(&request);
  EXPECT_EQ(request.members(), 0b01u);
  write.Take(Answers<StoreReply>({StoreReply()}));
  EXPECT_FALSE(write.Next());
  EXPECT_TRUE(write.Finish().ok());
}

// A write took replica 0 and missed 1; before it heard of that, 0 was ejected because of another write. So 1
// cannot be ejected, and must get the write before that is acknowledged: its old value is all that is left.
TEST_F(AttemptsTest, AWriteIsDoneAgainWhereItWasMissedIfWhoTookItIsEjectedMeanwhile) {
  Start(2);
  Write write(routing_, ctx_);
  ASSERT_TRUE(write.Begin("k").ok());
  ASSERT_TRUE(write.Next());
  ASSERT_EQ(write.channels().size(), 2u);
  const uint64_t first_version = write.version();
  ASSERT_TRUE(replicas().Eject(0, "another write"));
  write.Take(Answers<StoreReply>({StoreReply(), absl::UnavailableError("gone for a moment")}));
  ASSERT_TRUE(write.Next());
  EXPECT_THAT(std::vector(write.channels().begin(), write.channels().end()), ElementsAre(&channels_[1]));
  EXPECT_GT(write.version(), first_version);
  write.Take(Answers<StoreReply>({StoreReply()}));
  EXPECT_FALSE(write.Next());
  EXPECT_TRUE(write.Finish().ok());
  EXPECT_EQ(write.taken(), 1u);
}

// Replica 0 takes part alone; while it is asked, the other one comes back, empty. Whatever becomes of the
// write, 0 holds all there is.
TEST(Write, DoesNotEjectWhoTookPartAlone) {
  ReplicaOptions options = Patient(2);
  options.probe_interval = std::chrono::milliseconds(5);
  Deployment deployment("SIB1", 1, options);
  ASSERT_EQ(deployment.Set("k", "v").taken(), 2u);
  deployment.memcached(1).Stall();
  ASSERT_TRUE(deployment.replicas().Eject(1, "stalls"));
  Context ctx(kPatience);
  Write write(deployment.routing(), ctx);
  ASSERT_TRUE(write.Begin("other").ok());
  ASSERT_TRUE(write.Next());
  ASSERT_EQ(write.channels().size(), 1u);
  ctx.Cancel();
  EXPECT_FALSE(write.context().cancelled());
  deployment.memcached(1).GoOn();
  ASSERT_TRUE(deployment.replicas().WaitForAll(Deadline::In(kPatience)));
  write.Take(Answers<StoreReply>({absl::DeadlineExceededError("slow")}));
  EXPECT_FALSE(write.Next());
  EXPECT_EQ(write.Finish().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(deployment.replicas().IsAdmitted(0));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(deployment.Get("k"), "v");
}

class LeafTest : public testing::Test {
 protected:
  absl::Status Set(Deadline deadline, uint64_t version, StoreReply* reply) {
    StoreSet request;
    request.set_key("k"), request.set_value("v"), request.set_version(version);
    Context ctx(deadline);
    return leaf_.Set(ctx, request, reply);
  }

  TempDir dir_;
  MemcachedProcess process_{dir_.File("m")};
  LeafService leaf_{*StoreAddress::Parse(process_.address()), MemcachedOptions{}};
  const uint64_t version_ = VersionOfNow();
};

TEST_F(LeafTest, DoesNothingForAWriteThatNobodyWaitsFor) {
  StoreReply reply;
  EXPECT_EQ(Set(Deadline::At(TimePoint::min()), version_, &reply).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(process_.Look("k"), std::nullopt);
  ASSERT_TRUE(Set(Deadline::In(kPatience), version_, &reply).ok());  // nor has it kept the version
  EXPECT_FALSE(reply.late());
}

// A mid-tier that starts would else rely on what memcached held.
TEST_F(LeafTest, RemembersSinceWhenItsContentIsWhole) {
  const auto since = [&] {
    StoreRecall request;
    request.set_version(VersionOfNow());
    StoreHistory history;
    Context ctx(kPatience);
    EXPECT_TRUE(leaf_.Recall(ctx, request, &history).ok());
    EXPECT_FALSE(history.late());
    return history.since();
  };
  StoreReply reply;
  ASSERT_TRUE(Set(Deadline::In(kPatience), version_, &reply).ok());
  const uint64_t start = since();
  EXPECT_LE(start, version_);
  process_.Kill();
  process_.Start();
  EXPECT_GT(since(), version_);
  StoreFlush flush;
  flush.set_version(VersionOfNow());
  Context ctx(kPatience);
  ASSERT_TRUE(leaf_.Flush(ctx, flush, &reply).ok());
  EXPECT_EQ(since(), flush.version());
  // It was sent nothing until it took part again.
  flush.set_version(flush.version() + 100);
  flush.set_done_before(true);
  ASSERT_TRUE(Set(Deadline::In(kPatience), VersionOfNow(), &reply).ok());
  ASSERT_TRUE(leaf_.Flush(ctx, flush, &reply).ok());
  EXPECT_EQ(process_.Look("k"), "v");
  EXPECT_EQ(since(), flush.version());
}

// Else nothing could ever be written there again.
TEST_F(LeafTest, RefusesVersionsThatCannotBe) {
  StoreReply reply;
  const absl::Status status = Set(Deadline::In(kPatience), ~uint64_t{0}, &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a day ahead"));
  StoreFlush flush;
  flush.set_version(~uint64_t{0});
  Context ctx(kPatience);
  EXPECT_EQ(leaf_.Flush(ctx, flush, &reply).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(Set(Deadline::In(kPatience), version_, &reply).ok());
  EXPECT_FALSE(reply.late());
  EXPECT_EQ(process_.Look("k"), "v");
}

}  // namespace
}  // namespace curtail::router
