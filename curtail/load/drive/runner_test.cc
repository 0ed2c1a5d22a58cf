// SPDX-License-Identifier: Apache-2.0
//
// The runners against a server in this process. Nothing here depends on how fast the machine is, only on
// order: stalls end when the generator has sent a given request, not after a time.
#include "curtail/load/drive/runner.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/exec/wait.h"
#include "curtail/load/drive/runner_testing.h"
#include "curtail/load/message/reply_check.h"
#include "curtail/observe/http_admin_testing.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/transport/socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(RunnerTest, SendsTheWholeScheduleAndJudgesReplies) {
  const Schedule schedule = Make(500, milliseconds(500), 7);
  absl::StatusOr<LoadResult> r = RunOpenLoop(Options(Serve()), Numbers(), schedule);
  ASSERT_TRUE(r.ok()) << r.status();
  const uint64_t n = DueTimes(schedule).size();
  EXPECT_EQ(r->scheduled, n);
  EXPECT_EQ(r->sent, n);
  EXPECT_EQ(r->ok, n);
  EXPECT_EQ(r->failed, 0u);
  EXPECT_EQ(r->all.count(), n);
  EXPECT_EQ(r->send_lag.count(), n);
  EXPECT_EQ(r->score.count, n);
  EXPECT_EQ(r->score.min, 1) << "each reply belongs to its request";
  EXPECT_EQ(r->score.name, "echoed");
  EXPECT_GT(r->cpu, Nanos(0));
  EXPECT_FALSE(r->interrupted);
  EXPECT_EQ(r->plan.seed, 7u);
  EXPECT_EQ(calls_.load(), static_cast<int>(n) + 1) << "one more to check the target";
}

TEST_F(RunnerTest, AThreadSendsItsShareOfTheRequests) {
  class Seen : public Numbers {
   public:
    std::string Request(uint64_t index) const override {
      indexes.push_back(index);
      return Numbers::Request(index);
    }
    mutable std::vector<uint64_t> indexes;
  };
  RunOptions options = Options(Serve());
  options.threads = 3;
  options.thread = 1;
  options.requests = 5;
  const Seen workload;
  const absl::StatusOr<LoadResult> r = RunClosedLoop(options, workload, 1, seconds(20));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->ok, 5u);
  EXPECT_EQ(r->score.min, 1) << "each reply belongs to its request";
  EXPECT_THAT(workload.indexes, testing::ElementsAre(1, 4, 7, 10, 13));
}

TEST_F(RunnerTest, StartsWhenItIsTold) {
  RunOptions options = Options(Serve());
  options.start_at = Now() + milliseconds(200);
  const absl::StatusOr<LoadResult> r = RunClosedLoop(options, Numbers(), 1, milliseconds(10));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_GE(Now(), *options.start_at + milliseconds(10));
  EXPECT_GT(r->ok, 0u);
  const Nanos wall = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_LT(r->started, wall);
  EXPECT_GT(r->started, wall - kMaxTestWait);
  EXPECT_TRUE(absl::IsInvalidArgument(RunClosedLoop(options, Numbers(), 1, milliseconds(10)).status()))
      << "that time has passed";
  options.start_at = Now() + std::chrono::hours(1);
  const std::atomic<bool> stop{true};
  options.stop = &stop;
  options.requests = 1;  // no call before the run
  EXPECT_TRUE(absl::IsCancelled(RunClosedLoop(options, Numbers(), 1, milliseconds(10)).status()));
}

TEST_F(RunnerTest, ChecksEveryReplyInTheWindow) {
  RunOptions options = Options(Serve());
  auto checks = ReplyChecks::OfBodies({R"(. contains "ok:")", R"(. contains "7")"});
  ASSERT_TRUE(checks.ok()) << checks.status();
  options.checks = *std::move(checks);
  const absl::StatusOr<LoadResult> r = RunClosedLoop(options, Numbers(), 2, milliseconds(100));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->plan.checks, options.checks->texts());
  const ReplyCheckSummary& all = r->reply_checks;
  EXPECT_EQ(all.replies, r->ok);
  ASSERT_EQ(all.checks.size(), 2u);
  EXPECT_EQ(all.checks[0].failed, 0u);
  EXPECT_EQ(all.checks[1].failed, all.failed);
  EXPECT_GT(all.failed, 0u) << "most numbers have no 7";
  EXPECT_LT(all.failed, std::max<uint64_t>(all.replies, 8)) << "the number 7 has one";
  EXPECT_THAT(all.checks[1].example, testing::HasSubstr("no such text"));
  EXPECT_EQ(r->failed, 0u) << "a reply that fails a check is OK all the same";
}

TEST_F(RunnerTest, EachRequestGoesToItsMethod) {
  // Every third number is shouted; an answer of the other method scores 0.
  class Mix : public Numbers {
   public:
    std::string_view MethodOf(uint64_t index) const override {
      return index % 3 == 0 ? "/test.Echo/Shout" : method();
    }
    double Score(uint64_t index, std::string_view reply) const override {
      return index % 3 == 0 ? (reply == absl::StrCat("OK:", index, "!") ? 1 : 0)
                            : Numbers::Score(index, reply);
    }
  };
  const auto result = RunOpenLoop(Options(Serve()), Mix(), Make(2000, milliseconds(200)));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->ok, result->sent);
  EXPECT_EQ(result->score.min, 1);
}

// Property: the requests that begin a trace have a root span and, at the server, one within it; the others have none.
TEST_F(RunnerTest, RequestsBeginTraces) {
  ServerOptions server;
  server.http_admin = "127.0.0.1:0";
  server.trace = {.to = "memory", .sample = 0};
  RunOptions options = Options(Serve(-1, nullptr, std::move(server)));
  auto tracer = RequestTracer::Start({.to = "memory", .sample = 0.5});
  ASSERT_TRUE(tracer.ok()) << tracer.status();
  options.tracer = tracer->get();
  options.requests = 100;
  const auto r = RunOpenLoop(options, Numbers(), Make(500, seconds(10)));
  ASSERT_TRUE(r.ok()) << r.status();
  const uint64_t roots = (*tracer)->roots().count();
  EXPECT_GT(roots, 10u);
  EXPECT_LT(roots, 90u);
  EXPECT_LE((*tracer)->roots().max(), r->since_sent.max());
  const auto spans = [&] {
    const std::string page = observe::HttpPeer(server_->http_admin_address()).Get("/traces").body;
    uint64_t children = 0;
    for (size_t at = 0; (at = page.find(R"("parent": ")", at)) != page.npos; ++at) ++children;
    return children;
  };
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (spans() < roots && !deadline.Expired()) BetweenLooks();
  EXPECT_EQ(spans(), roots);
}

TEST_F(RunnerTest, ATracerSaysWhatItCannotDo) {
  EXPECT_EQ(RequestTracer::Start({.to = "jaeger=http://a"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RequestTracer::Start({.to = "memory", .sample = 2}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RunnerTest, LeavesTheWarmUpOut) {
  const Schedule schedule = Make(500, milliseconds(500));
  RunOptions options = Options(Serve());
  options.warmup = milliseconds(300);
  absl::StatusOr<LoadResult> r = RunOpenLoop(options, Numbers(), schedule);
  ASSERT_TRUE(r.ok()) << r.status();
  const std::vector<Nanos> due = DueTimes(schedule);
  EXPECT_EQ(r->scheduled, static_cast<uint64_t>(std::count_if(
                              due.begin(), due.end(), [](Nanos at) { return at >= milliseconds(300); })));
  EXPECT_EQ(r->plan.duration, milliseconds(200));
}

// Keeps what it hears.
class Listener final : public RunObserver {
 public:
  void Started(TimePoint start) override { this->start = start; }
  void Ended(Nanos due, Nanos latency, bool ok) override { calls.emplace(due, std::pair(latency, ok)); }

  TimePoint start;
  std::multimap<Nanos, std::pair<Nanos, bool>> calls;
};

TEST_F(RunnerTest, AStallShowsInEveryRequestThatWasDueMeanwhile) {
  // The server stalls at request 100 until request 300 is being built, 200 requests later. A generator that
  // waited for replies would see one slow request, 0.2 % of all; on schedule the stall must reach down to the
  // p80.
  const Schedule schedule = Make(500, seconds(1), 3);
  const std::vector<Nanos> due = DueTimes(schedule);
  ASSERT_GT(due.size(), 400u);
  const Nanos stall = due[299] - due[100];
  RunOptions options = Options(Serve(100, &gate_));
  Listener listener;
  options.observer = &listener;
  absl::StatusOr<LoadResult> r = RunOpenLoop(options, Numbers(300, &gate_), schedule);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->failed, 0u);
  Histogram heard;
  for (const auto& [due, end] : listener.calls) heard.Record(end.first);
  for (const double percentile : {50.0, 80.0, 99.0, 100.0})
    EXPECT_EQ(heard.Percentile(percentile), r->all.Percentile(percentile)) << percentile;
  EXPECT_GE(r->all.max(), stall);
  EXPECT_GE(r->all.Percentile(99), stall * 9 / 10);
  EXPECT_GE(r->all.Percentile(80), stall / 4);
  uint64_t slow = 0;
  for (const Histogram::Bucket& b : r->all.Buckets()) slow += b.low >= stall / 4 ? b.count : 0;
  EXPECT_GE(slow, 100u) << "most of the 200 that were due during the stall";
}

TEST_F(RunnerTest, AReplyCountsFromItsArrivalWhileTheThreadSleeps) {
  // The thread sleeps until the next send, some 4 ms, where the kernel says when the reply came. Of a Unix socket it
  // does not say, so that the thread must not. Most replies may be slow: this machine may be busy.
  const Schedule schedule = *Schedule::Make(*RateCurve::Constant(250, seconds(1)), Gaps::kConstant, 1);
  for (const std::string& listen :
       {std::string("127.0.0.1:0"), absl::StrCat("unix:", testing::TempDir(), "/runner_test.", getpid())}) {
    ServerOptions server;
    server.listen = {listen};
    absl::StatusOr<LoadResult> r = RunOpenLoop(Options(Serve(-1, nullptr, server)), Numbers(), schedule);
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_EQ(r->failed, 0u) << listen;
    EXPECT_LT(r->all.Percentile(10), milliseconds(2)) << listen;
  }
}

TEST_F(RunnerTest, ClosedLoopHidesTheSameStallAndIsLabelled) {
  const std::string target = Serve(100, &gate_);
  std::thread opener([&] {
    // Open the gate when nothing has moved for a while: the one stalled request holds everything up.
    int last = -1;
    const Deadline limit = Deadline::In(kMaxTestWait);
    while (!limit.Expired() && (calls_.load() < 100 || calls_.load() != last)) {
      last = calls_.load();
      std::this_thread::sleep_for(milliseconds(50));
    }
    gate_.Open();
  });
  absl::StatusOr<LoadResult> r = RunClosedLoop(Options(target), Numbers(), 1, milliseconds(1500));
  opener.join();
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(r->plan.closed());
  EXPECT_EQ(r->failed, 0u);
  EXPECT_GT(r->ok, 101u);
  EXPECT_GE(r->all.max(), milliseconds(40));
  EXPECT_LT(r->all.Percentile(80), r->all.max() / 2) << "only one request met the stall";
  EXPECT_TRUE(r->send_lag.empty());
}

TEST_F(RunnerTest, ClosedLoopKeepsItsNumberInFlight) {
  // Requests built and not yet judged are in flight; the check before the run is built but not judged.
  class Watch final : public Workload {
   public:
    std::string_view method() const override { return "/test.Echo/Echo"; }
    std::string Request(uint64_t index) const override {
      most = std::max(most, ++built - judged - 1);
      return std::to_string(index);
    }
    double Score(uint64_t, std::string_view) const override { return ++judged, 1; }
    mutable int built = 0, judged = 0, most = 0;
  };
  Live live;
  RunOptions options = Options(Serve());
  options.live = &live;
  const Watch workload;
  absl::StatusOr<LoadResult> r = RunClosedLoop(options, workload, 8, milliseconds(200));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->plan.outstanding, 8);
  EXPECT_GT(r->ok, 8u);
  EXPECT_EQ(workload.most, 8);
  EXPECT_EQ(live.in_flight.load(), 0u) << "drained";
}

// Its handlers answer one request at a time, and only once the client has sent one for each answer.
class OneAtATime final : public Service {
 public:
  OneAtATime(const std::atomic<int>* built, int outstanding, int last)
      : built_(*built), outstanding_(outstanding), last_(last) {}
  std::string_view FullName() const override { return "test.Echo"; }
  std::vector<MethodHandler> Handlers() override {
    MethodHandler echo;
    echo.name = "Echo";
    echo.handler = [this](Context&, std::string_view request, std::string* reply) {
      FlushBeforeWait();  // the answers so far have left
      const int expected = std::min(answered_++ + outstanding_, last_);
      for (const Deadline end = Deadline::In(kMaxTestWait); built_ < expected && !broken_;) {
        broken_ = end.Expired();
        BetweenLooks();
      }
      if (broken_) return absl::InternalError("an answer was followed by no request");
      *reply = std::string("ok:").append(request);
      return absl::OkStatus();
    };
    return {echo};
  }

 private:
  const std::atomic<int>& built_;
  const int outstanding_, last_;
  // Owned by the one thread that runs handlers.
  int answered_ = 0;
  bool broken_ = false;  // it has waited in vain
};

TEST_F(RunnerTest, AClosedLoopFollowsEachAnswerWithARequest) {
  class Counted final : public Numbers {
   public:
    std::string Request(uint64_t index) const override { return ++built, Numbers::Request(index); }
    mutable std::atomic<int> built{0};
  } workload;
  constexpr int kOutstanding = 4, kRequests = 40;
  ServerOptions server;
  server.config = *Config::Parse("SIB1");
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<OneAtATime>(&workload.built, kOutstanding, kRequests));
  server_ = *Server::Start(std::move(server), std::move(services));
  RunOptions options = Options(server_->addresses().front());
  options.requests = kRequests;
  const absl::StatusOr<LoadResult> r =
      RunClosedLoop(options, workload, kOutstanding, std::chrono::minutes(10));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->ok, static_cast<uint64_t>(kRequests));
}

TEST_F(RunnerTest, TimeoutsCountAsAtLeastTheTimeout) {
  // The server stalls for good (until the test ends), so everything from request 50 on times out.
  const std::string target = Serve(50, &gate_);
  RunOptions options = Options(target);
  options.timeout = milliseconds(100);
  const Schedule schedule = Make(500, milliseconds(400), 2);
  absl::StatusOr<LoadResult> r = RunOpenLoop(options, Numbers(), schedule);
  gate_.Open();
  ASSERT_TRUE(r.ok()) << r.status();
  const uint64_t n = DueTimes(schedule).size();
  EXPECT_EQ(r->scheduled, n);
  EXPECT_GE(r->failed, n - 50);
  EXPECT_EQ(r->ok + r->failed, n) << "nothing is omitted";
  EXPECT_EQ(r->codes.at("DEADLINE_EXCEEDED"), r->failed);
  EXPECT_GE(r->failure.min(), milliseconds(100));
  EXPECT_GE(r->all.Percentile(99), milliseconds(100));
  EXPECT_EQ(r->unfinished, 0u);
}

TEST_F(RunnerTest, AnObserverHearsOfEachRequestOnce) {
  // As above, but at most 20 calls may be in flight: some are answered, some time out, some are never sent.
  RunOptions options = Options(Serve(50, &gate_));
  options.timeout = milliseconds(100);
  options.warmup = milliseconds(50);
  options.max_in_flight = 20;
  Listener listener;
  options.observer = &listener;
  const TimePoint before = Now();
  const Schedule schedule = Make(500, milliseconds(400), 2);
  absl::StatusOr<LoadResult> r = RunOpenLoop(options, Numbers(), schedule);
  gate_.Open();
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_GE(listener.start, before);
  const std::vector<Nanos> due = DueTimes(schedule);
  ASSERT_EQ(listener.calls.size(), due.size());
  uint64_t ok = 0;
  uint64_t failed = 0;
  size_t i = 0;
  for (const auto& [at, end] : listener.calls) {
    EXPECT_EQ(at, due[i++]);
    EXPECT_TRUE(end.second || end.first >= options.timeout) << end.first.count();
    if (at >= options.warmup) ++(end.second ? ok : failed);
  }
  EXPECT_EQ(ok, r->ok);
  EXPECT_EQ(failed, r->failed);
  EXPECT_GT(r->dropped, 0u);
  EXPECT_GT(r->failed, r->dropped);
}

TEST_F(RunnerTest, RefusalsAreCountedByCodeAndText) {
  const FixedWorkload refused("/test.Echo/Echo", "refuse");
  absl::StatusOr<LoadResult> r = RunOpenLoop(Options(Serve()), refused, Make(500, milliseconds(200)));
  ASSERT_TRUE(r.ok()) << r.status() << " (RESOURCE_EXHAUSTED is an answer: the run goes on)";
  EXPECT_EQ(r->ok, 0u);
  EXPECT_GT(r->failed, 0u);
  EXPECT_EQ(r->codes.at("RESOURCE_EXHAUSTED"), r->failed);
  EXPECT_EQ(r->errors.at("RESOURCE_EXHAUSTED: try later"), r->failed);
  EXPECT_EQ(r->all.min(), r->plan.timeout);
}

TEST_F(RunnerTest, TooManyInFlightAreDroppedAndCounted) {
  // The server stalls from request 50 until the schedule is nearly over; ten calls may be in flight
  // meanwhile.
  RunOptions options = Options(Serve(50, &gate_));
  options.max_in_flight = 10;
  const Schedule schedule = Make(1000, milliseconds(300), 4);
  const uint64_t n = DueTimes(schedule).size();
  ASSERT_GT(n, 200u);
  absl::StatusOr<LoadResult> r = RunOpenLoop(options, Numbers(n - 20, &gate_), schedule);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->scheduled, n);
  EXPECT_GE(r->dropped, n - 20 - 50 - 10 - 32)
      << "all that were due during the stall, but for ten and a burst";
  EXPECT_EQ(r->sent + r->dropped, n);
  EXPECT_EQ(r->all.count(), n);
  EXPECT_EQ(r->codes.at("NOT_SENT"), r->dropped);
  EXPECT_THAT(r->warnings, testing::Contains(testing::HasSubstr("were not sent")));
}

TEST_F(RunnerTest, StopEndsTheRunEarly) {
  std::atomic<bool> stop{false};
  // Set by the generator's own progress: building request 100 asks it to stop.
  class StopAt final : public Workload {
   public:
    explicit StopAt(std::atomic<bool>* stop) : stop_(stop) {}
    std::string_view method() const override { return "/test.Echo/Echo"; }
    std::string Request(uint64_t index) const override {
      if (index == 100) *stop_ = true;
      return std::to_string(index);
    }

   private:
    std::atomic<bool>* const stop_;
  };
  RunOptions options = Options(Serve());
  options.stop = &stop;
  absl::StatusOr<LoadResult> r = RunOpenLoop(options, StopAt(&stop), Make(1000, seconds(60)));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(r->interrupted);
  EXPECT_GE(r->ok, 100u);
  EXPECT_LE(r->ok, 140u) << "what was due at that moment may still be sent";
  EXPECT_LT(r->measured, seconds(20));
}

TEST_F(RunnerTest, UsesSeveralConnections) {
  RunOptions options = Options(Serve());
  options.channel.connections = 4;
  absl::StatusOr<LoadResult> r = RunOpenLoop(options, Numbers(), Make(500, milliseconds(200)));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->failed, 0u);
  EXPECT_EQ(calls_.load(), static_cast<int>(r->ok) + 4) << "each connection was checked";
}

TEST_F(RunnerTest, EndsAfterANumberOfRequests) {
  RunOptions options = Options(Serve());
  options.requests = 30;
  absl::StatusOr<LoadResult> open = RunOpenLoop(options, Numbers(), Make(300, std::chrono::minutes(10)));
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(calls_.load(), 30) << "none but those";
  EXPECT_EQ(open->scheduled, 30u);
  EXPECT_EQ(open->ok, 30u);
  EXPECT_EQ(open->plan.requests, 30u);
  EXPECT_FALSE(open->interrupted);
  EXPECT_LT(open->measured, kMaxTestWait);
  EXPECT_NEAR(open->sent_per_s, open->scheduled_per_s, 1e-6) << "over the time that they took";

  options.warmup = milliseconds(50);
  absl::StatusOr<LoadResult> closed = RunClosedLoop(options, Numbers(), 4, std::chrono::minutes(10));
  ASSERT_TRUE(closed.ok()) << closed.status();
  EXPECT_EQ(closed->ok, 30u) << "the warm-up's do not count";
  EXPECT_FALSE(closed->interrupted);
  EXPECT_LT(closed->measured, kMaxTestWait);
}

TEST_F(RunnerTest, DrawsTheMetadataOfEachRequest) {
  RunOptions options = Options(Serve());
  options.requests = 20;
  options.drawn_metadata =
      std::make_shared<const MetadataTemplate>(*MetadataTemplate::Parse({"number: {{index}}"}, 1));
  const FixedWorkload asks("/test.Echo/Echo", "number");
  absl::StatusOr<LoadResult> r = RunOpenLoop(options, asks, Make(500, std::chrono::minutes(10)));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->ok, 20u);
  EXPECT_EQ(numbers_.load(), 19 * 20 / 2) << "the first call's and those of requests 0 to 19";
}

}  // namespace
}  // namespace curtail
