// SPDX-License-Identifier: Apache-2.0
//
// Journeys against a service of known times.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "curtail/base/testing.h"
#include "curtail/load/drive/runner_testing.h"
#include "curtail/load/message/journey.h"

namespace curtail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanos kLoginTime = milliseconds(4);
constexpr Nanos kBuyTime = milliseconds(8);

// Login("N") gives "token-N" and takes kLoginTime; Buy("token-N") takes kBuyTime. A server that is `quick` takes no time.
class Shop final : public Service {
 public:
  explicit Shop(bool quick) : quick_(quick) {}

  std::string_view FullName() const override { return "test.Shop"; }
  std::vector<MethodHandler> Handlers() override {
    MethodHandler login, buy;
    login.name = "Login";
    login.handler = [this](Context&, std::string_view request, std::string* reply) {
      return Login(std::stoi(std::string(request)), reply);
    };
    buy.name = "Buy";
    buy.handler = [this](Context& ctx, std::string_view request, std::string*) {
      return Buy(request, ctx.metadata().Find("authorization").value_or(""));
    };
    return {login, buy};
  }

  // Login of this number or a later one waits at `gate`, once.
  int stall_at = -1;
  Gate gate;
  std::set<int> sold_out;  // who cannot buy

  std::map<int, int> logins() {
    std::lock_guard lock(mu_);
    return logins_;
  }

 private:
  absl::Status Login(int number, std::string* reply) {
    {
      std::lock_guard lock(mu_);
      ++logins_[number];
    }
    if (stall_at >= 0 && number >= stall_at && !stalled_.exchange(true) && !gate.Pass())
      return absl::InternalError("the gate stayed shut");
    if (!quick_) std::this_thread::sleep_for(kLoginTime);
    *reply = Join("token-", number);
    return absl::OkStatus();
  }
  absl::Status Buy(std::string_view request, std::string_view authorization) {
    if (!request.starts_with("token-")) return absl::InvalidArgumentError("that is not a token");
    if (authorization != Join("Bearer ", request)) return absl::UnauthenticatedError("log in first");
    if (sold_out.contains(std::stoi(std::string(request.substr(6))))) return absl::NotFoundError("sold out");
    if (!quick_) std::this_thread::sleep_for(kBuyTime);
    return absl::OkStatus();
  }

  const bool quick_;
  std::atomic<bool> stalled_{false};
  std::mutex mu_;
  std::map<int, int> logins_;  // by number
};

// Logs in as number `index`, pauses, and buys with the token. Building journey `open_at` opens the gate.
class Shopping final : public Journey {
 public:
  explicit Shopping(Nanos pause = Nanos::zero(), uint64_t open_at = 0, Gate* gate = nullptr)
      : pause_(pause), open_at_(open_at), gate_(gate) {}

  std::string_view method() const override { return "shopping"; }
  size_t steps() const override { return 2; }
  std::string_view StepName(size_t step) const override { return step == 0 ? "login" : "buy"; }
  std::string_view StepMethod(size_t step) const override {
    return step == 0 ? "/test.Shop/Login" : "/test.Shop/Buy";
  }
  Nanos PauseBefore(size_t, uint64_t) const override { return pause_; }
  Nanos longest_pauses() const override { return pause_; }
  absl::StatusOr<std::string> StepRequest(size_t step, uint64_t index,
                                          const KeptValues& kept) const override {
    if (step == 0 && gate_ != nullptr && index >= open_at_) gate_->Open();
    return step == 0 ? std::to_string(index) : *kept[0];
  }
  absl::Status AddStepMetadata(size_t step, uint64_t, const KeptValues& kept,
                               wire::Metadata* metadata) const override {
    if (step == 1) metadata->Add("authorization", Join("Bearer ", *kept[0]));
    return absl::OkStatus();
  }
  absl::Status Keep(size_t step, std::string_view reply, KeptValues* kept) const override {
    if (step == 0) *kept = {std::string(reply)};
    return absl::OkStatus();
  }

 private:
  const Nanos pause_;
  const uint64_t open_at_;
  Gate* const gate_;
};

class JourneyTest : public testing::Test {
 protected:
  RunOptions Serve(const char* config, bool quick = false) {
    auto shop = std::make_unique<Shop>(quick);
    shop_ = shop.get();
    ServerOptions options;
    options.config = *Config::Parse(config);
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::move(shop));
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    RunOptions run;
    run.targets = {server_->addresses().front()};
    run.warmup = Nanos(0);
    run.timeout = kMaxTestWait;
    return run;
  }

  std::unique_ptr<Server> server_;
  Shop* shop_ = nullptr;  // the server's
};

TEST_F(JourneyTest, StepsUseRepliesAndAreTimedApart) {
  const RunOptions options = Serve("SDB1-16");
  const Nanos pause = milliseconds(20);
  const Schedule schedule = *Schedule::Poisson(100, milliseconds(500), 1);
  const absl::StatusOr<LoadResult> r = RunOpenLoop(options, Shopping(pause), schedule);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->failed, 0u) << (r->errors.empty() ? "" : r->errors.begin()->first);
  ASSERT_GT(r->ok, 20u);
  ASSERT_EQ(r->steps.size(), 2u);
  EXPECT_EQ(r->steps[0].name, "login");
  EXPECT_EQ(r->steps[1].name, "buy");
  for (const PartResult& step : r->steps) {
    EXPECT_EQ(step.ok, r->ok);
    EXPECT_EQ(step.latency.count(), r->ok);
  }
  // Not all of them are slow, even on a busy machine. A login that took the time of a buy was timed with it.
  EXPECT_GE(r->steps[0].latency.min(), kLoginTime);
  EXPECT_LT(r->steps[0].latency.min(), kBuyTime);
  EXPECT_GE(r->steps[1].latency.min(), kBuyTime);
  EXPECT_LT(r->steps[1].latency.min(), kLoginTime + kBuyTime);
  EXPECT_GE(r->all.min(), kLoginTime + kBuyTime);
  EXPECT_LT(r->all.min(), pause) << "the pause is not part of it";
  EXPECT_EQ(r->with_pauses.count(), r->ok);
  EXPECT_GE(r->with_pauses.min(), kLoginTime + pause + kBuyTime);
}

TEST_F(JourneyTest, AFailureBelongsToItsStep) {
  RunOptions options = Serve("SDB1-4", /*quick=*/true);
  options.timeout = seconds(2);
  for (int i = 1; i < 1000; i += 2) shop_->sold_out.insert(i);  // journey 0 is the check's
  const absl::StatusOr<LoadResult> r =
      RunOpenLoop(options, Shopping(), *Schedule::Poisson(200, milliseconds(300), 1));
  ASSERT_TRUE(r.ok()) << r.status();
  ASSERT_GT(r->failed, 10u);
  EXPECT_EQ(r->steps[0].ok, r->ok + r->failed);
  EXPECT_EQ(r->steps[0].failed, 0u);
  EXPECT_EQ(r->steps[1].ok, r->ok);
  EXPECT_EQ(r->steps[1].failed, r->failed);
  EXPECT_EQ(r->codes.at("NOT_FOUND"), r->failed);
  EXPECT_EQ(r->errors.at("NOT_FOUND: step buy: sold out"), r->failed);
  // No journey that succeeds takes longer than the timeouts of its steps.
  EXPECT_GE(r->all.max(), 2 * options.timeout);
  EXPECT_GE(r->steps[1].latency.max(), options.timeout);
  EXPECT_LT(r->steps[0].latency.max(), options.timeout);
  EXPECT_EQ(r->with_pauses.count(), r->ok);
}

TEST_F(JourneyTest, AStallShowsInEveryJourneyThatWasDueMeanwhile) {
  // One thread serves. It stalls at the login of journey 100 until journey 300 is built. First steps count from the
  // intended start, so that most of the 200 show the stall; buying is due after the stalled login and does not.
  const RunOptions options = Serve("SIB1", /*quick=*/true);
  shop_->stall_at = 100;
  const Schedule schedule = *Schedule::Poisson(500, seconds(1), 3);
  std::vector<Nanos> due;
  Arrivals arrivals = schedule.arrivals();
  while (const std::optional<Nanos> next = arrivals.Next()) due.push_back(*next);
  ASSERT_GT(due.size(), 400u);
  const Nanos stall = due[297] - due[101];
  const absl::StatusOr<LoadResult> r =
      RunOpenLoop(options, Shopping(Nanos::zero(), 300, &shop_->gate), schedule);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->failed, 0u);
  EXPECT_GE(r->all.max(), stall);
  for (const Histogram* latency : {&r->all, &r->steps[0].latency}) {
    uint64_t slow = 0;
    for (const Histogram::Bucket& b : latency->Buckets()) slow += b.low >= stall / 4 ? b.count : 0;
    EXPECT_GE(slow, 100u);
  }
  EXPECT_LT(r->steps[1].latency.Percentile(80), r->steps[0].latency.Percentile(80));
}

TEST_F(JourneyTest, AClosedLoopKeepsItsNumberOfJourneys) {
  const RunOptions options = Serve("SDB1-16");
  const Nanos pause = milliseconds(10);
  const absl::StatusOr<LoadResult> r = RunClosedLoop(options, Shopping(pause), 4, milliseconds(1500));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->failed, 0u);
  EXPECT_GT(r->ok, 4u);
  // Each of the four takes at least so long.
  EXPECT_LE(r->sent, 4u * (milliseconds(1500) / (kLoginTime + pause + kBuyTime) + 1));
  for (const LoadInterval& interval : r->series) EXPECT_LE(interval.in_flight, 4u);
  EXPECT_EQ(r->steps[0].ok, r->sent);
}

TEST_F(JourneyTest, NoJourneyIsMadeTwice) {
  RunOptions options = Serve("SDB1-4", /*quick=*/true);
  options.channel.connections = 3;
  const absl::StatusOr<LoadResult> r = RunClosedLoop(options, Shopping(), 2, milliseconds(100));
  ASSERT_TRUE(r.ok()) << r.status();
  const std::map<int, int> logins = shop_->logins();
  EXPECT_EQ(logins.size(), r->sent + 3) << "the check makes one a connection";
  for (const auto& [number, times] : logins) EXPECT_EQ(times, 1) << number;
}

TEST_F(JourneyTest, AFirstJourneyThatFailsRefusesTheRun) {
  const RunOptions options = Serve("SDB1-4", /*quick=*/true);
  shop_->sold_out = {0};
  const absl::StatusOr<LoadResult> r = RunClosedLoop(options, Shopping(), 1, milliseconds(100));
  EXPECT_EQ(r.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(r.status().message(),
            "nothing was measured, as the first journey failed: NOT_FOUND: step buy: sold out");
}

TEST_F(JourneyTest, AnInterruptionCutsJourneysThatPause) {
  // Its pause outlasts the test. The check waits for a second of it.
  RunOptions options = Serve("SDB1-4", /*quick=*/true);
  options.timeout = milliseconds(500);
  std::atomic<bool> stop{false};
  options.stop = &stop;
  Live live;
  options.live = &live;
  std::thread stopper([&] {
    const Deadline limit = Deadline::In(kMaxTestWait);
    while (live.sent.load() < 10 && !limit.Expired()) BetweenLooks();
    stop = true;
  });
  const TimePoint start = Now();
  const absl::StatusOr<LoadResult> r =
      RunOpenLoop(options, Shopping(std::chrono::hours(1)), *Schedule::Poisson(200, seconds(60), 1));
  stopper.join();
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(r->interrupted);
  EXPECT_EQ(r->unfinished, 0u);
  EXPECT_EQ(r->failed, 0u);
  EXPECT_EQ(r->sent, 0u) << "none of them ended";
  EXPECT_LT(Now() - start, seconds(30));
}

}  // namespace
}  // namespace curtail
