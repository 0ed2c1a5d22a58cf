// SPDX-License-Identifier: Apache-2.0
//
// The whole loop on a clock that is moved by hand: Poisson arrivals, and a timer every 5 ms.
#include "curtail/adapt/controller.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "curtail/adapt/policy_kind.h"
#include "curtail/adapt/profile_testing.h"
#include "curtail/base/cpus.h"
#include "curtail/base/rng.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kSeed = 804;

class FakeServer final : public Actuator {
 public:
  explicit FakeServer(std::string_view config) : config_(ConfigOf(config)) {}
  absl::Status SwitchTo(const Config& config) override {
    MutexLock lock(mu_);
    ++asked_;
    if (config == refused_) return absl::InvalidArgumentError("too many threads");
    config_ = config;
    return absl::OkStatus();
  }
  Config current() const override {
    MutexLock lock(mu_);
    return config_;
  }
  void Refuse(std::string_view config) {
    MutexLock lock(mu_);
    refused_ = ConfigOf(config);
  }
  int asked() const {
    MutexLock lock(mu_);
    return asked_;
  }
  std::string text() const { return current().ToString(); }

 private:
  mutable Mutex mu_;
  Config config_ CURTAIL_GUARDED_BY(mu_);
  Config refused_ CURTAIL_GUARDED_BY(mu_){.network = 0};
  int asked_ CURTAIL_GUARDED_BY(mu_) = 0;
};

std::unique_ptr<Policy> Make(std::string_view spec, const Profile& profile = SteppedProfile()) {
  return MakePolicy(spec, &profile, {.cpus = 2}).value();
}

// Time, arrivals and the timer.
class Traffic {
 public:
  Traffic(Controller* controller, uint64_t seed) : controller_(controller), rng_(seed) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  }

  // Arrivals at this rate for this long, or until `done` says so after an arrival; returns how many there were.
  template <class Done>
  int Run(double rate, Nanos length, Done done) {
    const TimePoint end = now_ + length;
    int arrivals = 0;
    while (true) {
      const TimePoint next = now_ + Nanos(static_cast<int64_t>(rng_.Exponential(1e9 / rate)));
      RunTimer(std::min(next, end));
      if (next >= end) break;
      now_ = next;
      controller_->OnArrival(now_);
      ++arrivals;
      if (done()) return arrivals;
    }
    now_ = end;
    return arrivals;
  }
  int Run(double rate, Nanos length) {
    return Run(rate, length, [] { return false; });
  }
  // No arrivals.
  void Silence(Nanos length) {
    RunTimer(now_ + length);
    now_ += length;
  }
  TimePoint now() const { return now_; }

 private:
  void RunTimer(TimePoint until) {
    for (; timer_ <= until; timer_ += milliseconds(5)) controller_->OnTimer(timer_);
  }
  Controller* const controller_;
  Rng rng_;
  TimePoint now_{seconds(1)};
  TimePoint timer_{seconds(1)};
};

TEST(Controller, FindsTheBestConfigForASteadyLoad) {
  for (const auto& [rate, config] :
       std::vector<std::pair<double, std::string>>{{100, "SIP1"}, {3000, "SDP1-20"}, {9500, "SDB1-50"}}) {
    FakeServer server("SDB1-8");
    Controller controller(Make("mutune"), &server, {});
    Traffic traffic(&controller, kSeed);
    traffic.Run(rate, seconds(5));
    EXPECT_EQ(server.text(), config);
    const ControllerStats stats = controller.Stats();
    EXPECT_LE(stats.switches, 3u);
    EXPECT_NEAR(stats.rates.slow, rate, 0.4 * rate);
    EXPECT_EQ(stats.current, server.current());
  }
}

TEST(Controller, BunchesAreNotEvaluatedForComingSoon) {
  FakeServer server("SDB1-8");
  Controller controller(Make("mutune"), &server, {});
  TimePoint now(seconds(1));
  const auto bunch = [&] {  // sixteen at a time, 100 times a second, as a batching client sends them
    now += milliseconds(10);
    for (int i = 0; i < 16; ++i) controller.OnArrival(now + std::chrono::microseconds(i));
  };
  for (int i = 0; i < 200; ++i) bunch();
  const uint64_t before = controller.Stats().evaluations;
  for (int i = 0; i < 1000; ++i) bunch();
  const uint64_t evaluations = controller.Stats().evaluations - before;
  EXPECT_GE(evaluations, 16000u / 8);
  EXPECT_LE(evaluations, 16000u / 8 + 16000u / 64 + 16);
}

TEST(Controller, AtACrossingWithASteadyLoadSwitchesAtMostOnceASecond) {
  // SIP1 gives way to SDP1-20 at 1000/s, where it ends, and SDP1-20 to SDB1-50 at 7500/s, where their lines
  // cross.
  for (double rate : {1000.0, 7500.0}) {
    uint64_t switches[2];
    for (int paper = 0; paper < 2; ++paper) {
      FakeServer server("SDB1-8");
      Controller controller(Make(paper != 0 ? "mutune:paper" : "mutune"), &server,
                            {.evaluate_every = paper != 0 ? 1 : 8});
      Traffic traffic(&controller, kSeed + static_cast<uint64_t>(rate));
      traffic.Run(rate, seconds(2));
      const uint64_t before = controller.Stats().switches;
      traffic.Run(rate, seconds(60));
      switches[paper] = controller.Stats().switches - before;
    }
    std::printf("at %.0f/s in a minute: %llu switches, %llu as the paper has it\n", rate,
                static_cast<unsigned long long>(switches[0]), static_cast<unsigned long long>(switches[1]));
    EXPECT_LE(switches[0], 6u);
    EXPECT_GT(switches[1], 600u) << "or the paper's estimator is not what it says";
  }
}

TEST(Controller, AFlashCrowdIsFollowedWithinFiveMillisecondsAndLeftAgain) {
  std::vector<int> needed;
  Nanos longest{0};
  for (uint64_t seed = kSeed; seed < kSeed + 20; ++seed) {
    FakeServer server("SDB1-50");
    Controller controller(Make("mutune", SteppedProfile(5000)), &server, {});
    Traffic traffic(&controller, seed);
    traffic.Run(100, seconds(10));
    ASSERT_EQ(server.text(), "SIP1");
    const TimePoint crowd = traffic.now();
    // SDP1-20 sustains 4000/s; it may be chosen on the way.
    const int arrivals = traffic.Run(8000, seconds(1), [&] { return server.text() == "SDB1-50"; });
    needed.push_back(arrivals);
    longest = std::max(longest, traffic.now() - crowd);
    EXPECT_LT(traffic.now() - crowd, milliseconds(5)) << arrivals << " arrivals";
    traffic.Run(8000, seconds(1));
    EXPECT_EQ(server.text(), "SDB1-50");
    const TimePoint end = traffic.now();
    traffic.Run(100, seconds(10), [&] { return server.text() == "SIP1"; });
    EXPECT_LT(traffic.now() - end, milliseconds(1200)) << "a step on the way costs its dwell";
    traffic.Run(100, seconds(5));
    EXPECT_EQ(server.text(), "SIP1");
    EXPECT_LE(controller.Stats().switches, 6u);
  }
  std::sort(needed.begin(), needed.end());
  std::printf("100 to 8000/s: SDB1-50 mostly after %d arrivals, at most after %d, %.2f ms\n",
              needed[needed.size() / 2], needed.back(),
              std::chrono::duration<double, std::milli>(longest).count());
}

TEST(Controller, SilenceLeadsBackWithoutArrivals) {
  FakeServer server("SIP1");
  Controller controller(Make("mutune"), &server, {});
  Traffic traffic(&controller, kSeed);
  traffic.Run(9500, seconds(2));
  ASSERT_EQ(server.text(), "SDB1-50");
  traffic.Silence(seconds(2));
  EXPECT_EQ(server.text(), "SIP1");
}

TEST(Controller, WithoutATimerThePaperNeverHearsSilence) {
  FakeServer server("SIP1");
  Controller controller(Make("mutune:paper"), &server, {.evaluate_every = 1});
  Traffic traffic(&controller, kSeed);
  traffic.Run(50000, seconds(1));
  ASSERT_EQ(server.text(), "SDB1-50");
  traffic.Silence(seconds(10));
  EXPECT_EQ(server.text(), "SDB1-50") << "its ring does not age, timer or not";
}

TEST(Controller, TbdAndFmSeeAWindowOfFiveMilliseconds) {
  for (const char* spec : {"tbd", "fm"}) {
    FakeServer server("SDB1-8");
    Controller controller(Make(spec), &server, {.evaluate_every = 1});
    Traffic traffic(&controller, kSeed);
    traffic.Run(100, seconds(1));
    ASSERT_NE(server.text(), "SDB1-50") << spec;
    const TimePoint crowd = traffic.now();
    traffic.Run(16000, seconds(1), [&] { return server.text() == "SDB1-50"; });
    EXPECT_LT(traffic.now() - crowd, milliseconds(10)) << spec;
  }
}

// A policy that always wants one config.
class Wants final : public Policy {
 public:
  explicit Wants(std::string_view config) : config_(ConfigOf(config)) {}
  Choice Decide(const Signals& s) override {
    window_seen += s.window != nullptr;
    if (s.window != nullptr) last = *s.window;
    return {config_, "wanted"};
  }
  int window_seen = 0;
  LatencyWindow last;

 private:
  const Config config_;
};

TEST(Controller, AFailureIsCountedReportedOnceAndNotRetriedInALoop) {
  FakeServer server("SIP1");
  server.Refuse("SDB1-50");
  int reports = 0;
  Controller controller(std::make_unique<Wants>("SDB1-50"), &server,
                        {.report = [&](const absl::Status& status) { reports += !status.ok(); }});
  for (int ms = 0; ms < 10000; ++ms) controller.OnTimer(TimePoint(seconds(1) + milliseconds(ms)));
  EXPECT_EQ(server.asked(), 4) << "at 0, 1, 3 and 7 s";
  EXPECT_EQ(reports, 1);
  const ControllerStats stats = controller.Stats();
  EXPECT_EQ(stats.failures, 4u);
  EXPECT_EQ(stats.switches, 0u);
  EXPECT_EQ(stats.last_failure.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(controller.History().size(), 4u);
  EXPECT_FALSE(controller.History()[0].status.ok());
  server.Refuse("SIB1");
  for (int ms = 10000; ms < 15001; ++ms) controller.OnTimer(TimePoint(seconds(1) + milliseconds(ms)));
  EXPECT_EQ(server.text(), "SDB1-50") << "the fifth time";
}

TEST(Controller, HistoryKeepsTheLastSwitches) {
  FakeServer server("SIP1");
  Controller controller(Make("tbd"), &server, {.evaluate_every = 1, .history = 3});
  Traffic traffic(&controller, kSeed);
  for (int i = 0; i < 4; ++i) traffic.Run(i % 2 == 0 ? 16000 : 200, milliseconds(100));
  const std::vector<SwitchRecord> history = controller.History();
  ASSERT_EQ(history.size(), 3u);
  EXPECT_GT(controller.Stats().switches, 3u);
  for (size_t i = 0; i < history.size(); ++i) {
    EXPECT_NE(history[i].from, history[i].to);
    EXPECT_FALSE(history[i].reason.empty());
    if (i > 0) {
      EXPECT_EQ(history[i].from, history[i - 1].to);
      EXPECT_GE(history[i].when, history[i - 1].when);
    }
  }
  EXPECT_EQ(history.back().to, server.current());
  const std::vector<SwitchRecord> last = controller.History(2);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[0].when, history[1].when);
  EXPECT_EQ(last[1].when, history[2].when);
}

// Takes a millisecond for a switch.
class SlowServer final : public Actuator {
 public:
  absl::Status SwitchTo(const Config& config) override {
    server_.SwitchTo(config).IgnoreError();
    clock.Advance(milliseconds(1));
    return absl::OkStatus();
  }
  Config current() const override { return server_.current(); }
  ManualTime clock;

 private:
  FakeServer server_{"SIP1"};
};

TEST(Controller, HistoryHasTheTimeAtWhichTheSwitchWasDone) {
  SlowServer server;
  server.clock.Advance(seconds(1));
  Controller controller(std::make_unique<Wants>("SDB1-50"), &server, {.clock = &server.clock});
  controller.OnTimer(server.clock.Now());
  ASSERT_EQ(controller.History().size(), 1u);
  EXPECT_EQ(controller.History()[0].when, TimePoint(seconds(1) + milliseconds(1)));
  EXPECT_TRUE(controller.History(0).empty());
}

TEST(Controller, NoticesThatSomeoneElseSwitched) {
  FakeServer server("SDB1-50");
  Controller controller(std::make_unique<Wants>("SDB1-50"), &server, {});
  ASSERT_TRUE(server.SwitchTo(ConfigOf("SIB1")).ok());
  controller.OnTimer(TimePoint(seconds(1)));
  EXPECT_EQ(server.text(), "SDB1-50");
}

TEST(Controller, LatenciesOfAnEarlierConfigAreDropped) {
  FakeServer server("SIP1");
  auto policy = std::make_unique<Wants>("SDB1-50");
  Wants& wants = *policy;
  Controller controller(std::move(policy), &server, {.evaluate_every = 1});
  const TimePoint start{seconds(1)};
  const uint32_t before = controller.OnArrival(start);  // and switches
  ASSERT_EQ(server.text(), "SDB1-50");
  const uint32_t after = controller.OnArrival(start + milliseconds(1));
  EXPECT_NE(before, after);
  controller.OnLatency(milliseconds(100), before);
  controller.OnLatency(milliseconds(2), after);
  controller.OnTimer(start + milliseconds(249));
  EXPECT_EQ(wants.window_seen, 0);
  controller.OnTimer(start + milliseconds(250));
  ASSERT_EQ(wants.window_seen, 1);
  EXPECT_EQ(wants.last.latencies.weight(), 1);
  EXPECT_NEAR(wants.last.latencies.QuantileUs(0.5), 2000, 130);
  EXPECT_EQ(wants.last.arrivals, 1u) << "the one that switched came before the window";
  controller.OnTimer(start + milliseconds(500));
  EXPECT_EQ(wants.last.latencies.weight(), 0);
}

// A second window, and the first one after a switch, count nothing that was used before them.
TEST(Controller, EachWindowHasTheCpuOfItsOwnTime) {
  constexpr Nanos kUsed = milliseconds(20), kLittle = milliseconds(10);
  const auto use = [&] {
    for (const Nanos until = ProcessCpuTime() + kUsed; ProcessCpuTime() < until;) {
    }
  };
  FakeServer server("SDB1-50");
  auto policy = std::make_unique<Wants>("SDB1-50");
  Wants& wants = *policy;
  Controller controller(std::move(policy), &server, {});
  TimePoint now{seconds(1)};
  const auto next_window = [&] {
    controller.OnTimer(now += milliseconds(250));
    return wants.last.cpu;
  };
  use();
  controller.OnTimer(now);
  use();
  EXPECT_GE(next_window(), kUsed);
  EXPECT_LT(next_window(), kLittle);
  use();
  ASSERT_TRUE(server.SwitchTo(ConfigOf("SIP1")).ok());
  controller.OnTimer(now += milliseconds(1));  // and switches back
  ASSERT_EQ(server.text(), "SDB1-50");
  EXPECT_LT(next_window(), kLittle);
  EXPECT_EQ(wants.window_seen, 3);
}

TEST(Controller, IpiFollowsEveryChangeOfTheBlockedCount) {
  FakeServer server("SDB1-50");
  Controller controller(Make("ipi:SDB1-2"), &server, {});
  controller.OnTimer(TimePoint(seconds(1)));
  EXPECT_EQ(server.text(), "SDB1-2");
  controller.OnBlocked(TimePoint(seconds(1)), 1);
  EXPECT_EQ(server.text(), "SDP1-2") << "two of three active, two CPUs";
  controller.OnBlocked(TimePoint(seconds(1)), -1);
  EXPECT_EQ(server.text(), "SDB1-2");
}

// A thread blocks while another evaluates: the policy calls back as that thread would.
class BlocksDuring final : public Policy {
 public:
  Choice Decide(const Signals& s) override {
    last_blocked = s.blocked;
    if (s.trigger == Trigger::kTimer) controller->OnBlocked(s.now, 1);
    return {s.current, "stays"};
  }
  Controller* controller = nullptr;
  int last_blocked = 0;
};

TEST(Controller, AChangeOfTheBlockedCountDuringAnEvaluationIsNotLost) {
  FakeServer server("SIP1");
  auto policy = std::make_unique<BlocksDuring>();
  BlocksDuring& blocks = *policy;
  Controller controller(std::move(policy), &server, {});
  blocks.controller = &controller;
  controller.OnTimer(TimePoint(seconds(1)));
  EXPECT_EQ(blocks.last_blocked, 1);
}

// Property: whatever threads call at once, arrivals are all counted, each switch is noted once, and the last
// change of the blocked count is the one that decides. First by one thread.
void CheckManyThreads(int threads) {
  constexpr int kEach = 5000;
  FakeServer server("SDB1-2");
  Controller controller(Make("ipi:SDB1-2"), &server, {});
  std::atomic<int64_t> clock{1'000'000'000};
  const auto work = [&] {
    for (int i = 0; i < kEach; ++i) {
      const TimePoint now(Nanos(clock.fetch_add(1000)));
      const uint32_t epoch = controller.OnArrival(now);
      controller.OnBlocked(now, 1);
      if (i % 64 == 0) controller.OnTimer(now);
      if (i % 512 == 0) {
        EXPECT_LE(controller.History().size(), 64u);
      }
      controller.OnBlocked(now, -1);
      controller.OnLatency(milliseconds(1), epoch);
    }
  };
  std::vector<std::thread> pool;
  for (int i = 1; i < threads; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  EXPECT_EQ(controller.Stats().arrivals, static_cast<uint64_t>(threads) * kEach);
  EXPECT_EQ(server.text(), "SDB1-2") << "none is blocked any more: three active";
  EXPECT_EQ(controller.Stats().switches, static_cast<uint64_t>(server.asked()));
}

TEST(Controller, OneThreadThatDoesAll) { CheckManyThreads(1); }
TEST(Controller, ManyThreadsStress) { CheckManyThreads(6); }

}  // namespace
}  // namespace curtail
