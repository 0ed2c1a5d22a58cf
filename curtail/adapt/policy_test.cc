// SPDX-License-Identifier: Apache-2.0
//
// MakePolicy() and the policies that a profile or a rule decides; online has a test of its own.
#include "curtail/adapt/policy_kind.h"

#include <chrono>
#include <cmath>
#include <string>

#include "curtail/adapt/internal/fixed_window.h"
#include "curtail/adapt/internal/online_knowledge.h"
#include "curtail/adapt/profile_testing.h"
#include "curtail/base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TimePoint At(Nanos t) { return TimePoint(seconds(10) + t); }

std::unique_ptr<Policy> PolicyOf(std::string_view spec, const Profile& profile, PolicyOptions options = {}) {
  absl::StatusOr<std::unique_ptr<Policy>> policy = MakePolicy(spec, &profile, options);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return *std::move(policy);
}

std::string Error(std::string_view spec, const Profile* profile, const PolicyOptions& options = {}) {
  const absl::StatusOr<std::unique_ptr<Policy>> policy = MakePolicy(spec, profile, options);
  EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument) << spec;
  return std::string(Message(policy.status()));
}

// A policy that is told rates and remembers what it chose.
class Told {
 public:
  Told(std::string_view spec, const Profile& profile, std::string_view config, PolicyOptions options = {})
      : policy_(PolicyOf(spec, profile, options)), config_(ConfigOf(config)) {}

  std::string Slow(double rate, Nanos at) {
    Signals s;
    s.rates.slow = rate;
    s.rates.paper = 1e9;  // must not matter
    return Ask(s, at);
  }
  std::string Plausible(double rate, double high, Nanos at) {
    Signals s;
    s.rates.slow = rate;
    s.rates.high = high;
    return Ask(s, at);
  }
  std::string Paper(double rate, Nanos at) {
    Signals s;
    s.rates.paper = rate;
    s.rates.slow = 1e9;
    return Ask(s, at);
  }
  std::string Arrivals(uint64_t before, Nanos at) {
    Signals s;
    s.arrivals = before;
    s.rates = {1e9, 1e9, 1e9};
    return Ask(s, at);
  }
  std::string Blocked(int blocked, Trigger trigger = Trigger::kBlocked) {
    Signals s;
    s.blocked = blocked;
    s.trigger = trigger;
    return Ask(s, Nanos(0));
  }

 private:
  std::string Ask(Signals& s, Nanos at) {
    s.now = At(at);
    s.current = config_;
    config_ = policy_->Decide(s).config;
    return config_.ToString();
  }
  std::unique_ptr<Policy> policy_;
  Config config_;
};

TEST(MakePolicy, SaysWhatIsWrong) {
  const Profile profile = SteppedProfile();
  EXPECT_THAT(Error("best", &profile), HasSubstr("there is static:CONFIG, mutune"));
  EXPECT_THAT(Error("mutune:x", &profile), HasSubstr("there is static:CONFIG"));
  EXPECT_THAT(Error("fm:", &profile), HasSubstr("there is static:CONFIG"));
  EXPECT_THAT(Error("ipi:", &profile), HasSubstr("there is static:CONFIG"));
  EXPECT_THAT(Error("static:SIX1", nullptr), HasSubstr("the third letter"));
  EXPECT_THAT(Error("static", nullptr), HasSubstr("the config is empty"));
  EXPECT_THAT(Error("static:AIP1-1", nullptr), HasSubstr("cannot run under AIP1-1"));
  for (const char* spec : {"mutune", "mutune:paper", "fm", "tbd", "ipi"}) {
    EXPECT_THAT(Error(spec, nullptr), HasSubstr("needs a profile")) << spec;
  }
  EXPECT_THAT(Error("online", nullptr), HasSubstr("list of configs"));
  EXPECT_THAT(Error("ipi", &profile, {.style = ServiceStyle::kContinuation}),
              HasSubstr("synchronous models only"));
  EXPECT_THAT(Error("ipi:FDB1-4", nullptr), HasSubstr("synchronous models only"));
  const Profile in_line = MakeProfile({100}, {{"SIP1", 1e18, [](double) { return 1.0; }}});
  EXPECT_THAT(Error("fm", &in_line), HasSubstr("no SDB config"));
  EXPECT_THAT(Error("ipi", &in_line), HasSubstr("no SDB config"));
  EXPECT_THAT(Error("mutune", &in_line, {.style = ServiceStyle::kContinuation}), HasSubstr("no config that"));
  EXPECT_THAT(Error("mutune", &in_line, {.allowed = [](const Config&) { return false; }}),
              HasSubstr("no config that"));
}

TEST(Static, StaysOrGoesToItsConfig) {
  Told told("static:SDB1-50", SteppedProfile(), "SIP1");
  EXPECT_EQ(told.Slow(1, Nanos(0)), "SDB1-50");
  EXPECT_EQ(told.Slow(1e6, seconds(1)), "SDB1-50");
}

TEST(Mutune, FollowsTheEnvelope) {
  Told told("mutune", SteppedProfile(), "SDB1-50");
  EXPECT_EQ(told.Slow(100, seconds(0)), "SIP1");
  EXPECT_EQ(told.Slow(3000, seconds(2)), "SDP1-20");
  EXPECT_EQ(told.Slow(9500, seconds(4)), "SDB1-50");
  EXPECT_EQ(told.Slow(100, seconds(6)), "SIP1");
  Told continuation("mutune", SteppedProfile(), "ADB1-4-4", {.style = ServiceStyle::kContinuation});
  EXPECT_EQ(continuation.Slow(100, seconds(0)), "AIP1-1");
}

TEST(Mutune, LeavesAConfigThatDoesNotSustainTheLoadAtOnceAndOthersAfterTheDwell) {
  Told told("mutune", SteppedProfile(), "SDB1-50");
  EXPECT_EQ(told.Slow(100, Nanos(0)), "SIP1");
  EXPECT_EQ(told.Slow(999.9, milliseconds(1)), "SIP1") << "sustains 1000";
  EXPECT_EQ(told.Slow(1000.1, milliseconds(2)), "SDP1-20") << "no dwell";
  EXPECT_EQ(told.Slow(9000, milliseconds(3)), "SDB1-50");
  EXPECT_EQ(told.Slow(100, milliseconds(4)), "SDB1-50") << "switched a moment ago";
  EXPECT_EQ(told.Slow(100, milliseconds(1002)), "SDB1-50");
  EXPECT_EQ(told.Slow(100, milliseconds(1003)), "SIP1");
  EXPECT_EQ(told.Slow(50000, milliseconds(1005)), "SDB1-50")
      << "none sustains it: the one that sustains most";
}

TEST(Mutune, ARisingLoadDoesNotWaitForTheDwellWhereAnotherConfigIsFarBetter) {
  // FIB1 keeps up with all of it, but queues from 2000/s on.
  const Profile profile =
      MakeProfile({100, 500, 1000, 2000, 3000, 4000},
                  {{"SIP1", 1000, [](double) { return 300.0; }},
                   {"FIB1", 1e18, [](double x) { return x <= 2000 ? 500.0 : 500 + (x - 2000) * 10; }},
                   {"SDB1-50", 1e18, [](double) { return 1500.0; }}});
  Told told("mutune", profile, "SIP1");
  EXPECT_EQ(told.Slow(1500, milliseconds(0)), "FIB1");
  EXPECT_EQ(told.Slow(2200, milliseconds(1)), "FIB1") << "2500 against 1500: it can wait";
  EXPECT_EQ(told.Slow(3500, milliseconds(2)), "SDB1-50") << "15500 against 1500";
  EXPECT_EQ(told.Slow(1500, milliseconds(3)), "SDB1-50") << "three times as good, but there is no haste";
  EXPECT_EQ(told.Slow(1500, milliseconds(1002)), "FIB1");
}

TEST(Mutune, ARiseBeyondTheConfigLeadsToWhatTheWorstPlausibleLoadNeeds) {
  Told told("mutune", SteppedProfile(), "SIP1");
  EXPECT_EQ(told.Plausible(100, 9500, milliseconds(0)), "SIP1") << "it sustains what is there";
  EXPECT_EQ(told.Plausible(1500, 9500, milliseconds(1)), "SDB1-50") << "in one step";
  EXPECT_EQ(told.Plausible(1500, 1600, milliseconds(900)), "SDB1-50") << "dwells";
  EXPECT_EQ(told.Plausible(1500, 1600, milliseconds(1100)), "SDP1-20");
  Told small("mutune", SteppedProfile(), "SIP1");
  EXPECT_EQ(small.Plausible(1500, 1700, milliseconds(0)), "SDP1-20");
}

TEST(Mutune, EntersAConfigOnlyWithHeadroom) {
  Told told("mutune", SteppedProfile(), "SDP1-20");
  EXPECT_EQ(told.Slow(900, seconds(0)), "SDP1-20") << "SIP1 sustains 1000, not 1035";
  EXPECT_EQ(told.Slow(860, seconds(2)), "SDP1-20") << "and gains less than a tenth at 860";
  EXPECT_EQ(told.Slow(800, seconds(4)), "SIP1") << "880 against 980";
}

TEST(Mutune, WithoutHeadroomALargeGainIsNoReasonEither) {
  const Profile profile = MakeProfile({500, 1000, 2000}, {{"SIP1", 1500, [](double) { return 100.0; }},
                                                          {"SDB1-8", 1e18, [](double) { return 1000.0; }}});
  Told told("mutune", profile, "SDB1-8");
  EXPECT_EQ(told.Slow(880, seconds(0)), "SDB1-8") << "SIP1 sustains 1000, not 1012";
  EXPECT_EQ(told.Slow(860, seconds(2)), "SIP1") << "989";
  EXPECT_EQ(told.Slow(990, seconds(4)), "SIP1") << "and stays";
}

TEST(OnlineKnowledge, AConfigIsSafeToTryAHalfOctaveAboveWhereItKeptUp) {
  using internal::Knowledge;
  Knowledge knowledge({ConfigOf("FIP1")}, std::nullopt);  // presumed to keep up with 4000/s
  LatencyWindow window;
  window.latencies.Add(std::chrono::milliseconds(1), 100);
  const int high = Knowledge::BucketOf(8000);
  knowledge.Learn(0, high - 2, At(Nanos(0)), window);
  EXPECT_TRUE(knowledge.SafeToTry(0, Knowledge::BucketOf(1000), At(Nanos(0))));
  EXPECT_TRUE(knowledge.SafeToTry(0, high - 1, At(Nanos(0))));
  EXPECT_FALSE(knowledge.SafeToTry(0, high, At(Nanos(0))));
  knowledge.LearnSaturation(0, high - 1, At(Nanos(0)));
  EXPECT_FALSE(knowledge.SafeToTry(0, high - 1, At(seconds(1))));
  EXPECT_TRUE(knowledge.Excluded(0, high, At(seconds(1))));
  EXPECT_FALSE(knowledge.Excluded(0, high - 2, At(seconds(1))));
  EXPECT_FALSE(knowledge.Excluded(0, high, At(std::chrono::minutes(15)))) << "forgiven";
}

TEST(OnlineKnowledge, ThreadsThatWaitHoldOneRequestEach) {
  using internal::Knowledge;
  Knowledge knowledge({ConfigOf("SIP1"), ConfigOf("SDB1-8")}, std::nullopt);  // a request takes a millisecond
  EXPECT_FALSE(knowledge.Excluded(0, Knowledge::BucketOf(500), At(Nanos(0))));
  EXPECT_TRUE(knowledge.Excluded(0, Knowledge::BucketOf(1000), At(Nanos(0))));
  EXPECT_FALSE(knowledge.Excluded(1, Knowledge::BucketOf(4000), At(Nanos(0))));
  EXPECT_TRUE(knowledge.Excluded(1, Knowledge::BucketOf(8000), At(Nanos(0))));
}

TEST(Mutune, SwitchesForAGainOnly) {
  const auto curves = [](double other) {
    return MakeProfile({100, 1000}, {{"SIP1", 1e18, [](double) { return 1000.0; }},
                                     {"SIB1", 1e18, [other](double) { return other; }}});
  };
  EXPECT_EQ(Told("mutune", curves(901), "SIP1").Slow(500, Nanos(0)), "SIP1");
  EXPECT_EQ(Told("mutune", curves(899), "SIP1").Slow(500, Nanos(0)), "SIB1");
  EXPECT_EQ(Told("mutune", curves(899), "SIP1", {.min_gain = 0.2}).Slow(500, Nanos(0)), "SIP1");
  EXPECT_EQ(Told("mutune", curves(899), "FIP1").Slow(500, Nanos(0)), "SIB1")
      << "the profile does not know FIP1";
}

TEST(Mutune, BeginsWithTheBestConfigHoweverLittleThatGains) {
  const Profile profile = MakeProfile({100, 1000}, {{"SIP1", 1e18, [](double) { return 1000.0; }},
                                                    {"SIB1", 1e18, [](double) { return 1001.0; }}});
  Told told("mutune", profile, "SIB1");
  EXPECT_EQ(told.Slow(0, Nanos(0)), "SIP1");
}

TEST(Mutune, SwitchesForALowerMedianWhereThePercentileIsAsGood) {
  const auto flat = [](double) { return 1000.0; };
  const auto with = [&](double p50_us) {
    return MakeProfile({100, 1000}, {{"SDB1-8", 1e18, flat, 0.1, 800}, {"SIP1", 1e18, flat, 0.1, p50_us}});
  };
  EXPECT_EQ(Told("mutune", with(719), "SDB1-8").Slow(500, Nanos(0)), "SIP1");
  EXPECT_EQ(Told("mutune", with(721), "SDB1-8").Slow(500, Nanos(0)), "SDB1-8");
}

TEST(Mutune, SwitchesForLessCpuWhereThePercentileIsAsGood) {
  const auto flat = [](double) { return 1000.0; };
  const auto with = [&](double cores) {
    return MakeProfile({100, 1000},
                       {{"SDB1-8", 1e18, flat, 0.1, 500, 0.5}, {"SIB1", 1e18, flat, 0.1, 500, cores}});
  };
  EXPECT_EQ(Told("mutune", with(0.3), "SDB1-8").Slow(500, Nanos(0)), "SIB1");
  EXPECT_EQ(Told("mutune", with(0.47), "SDB1-8").Slow(500, Nanos(0)), "SDB1-8") << "hardly any CPU to save";
  EXPECT_EQ(Told("mutune", with(0.3), "SDB1-8", {.cpu_weight = 0}).Slow(500, Nanos(0)), "SDB1-8");
}

TEST(Mutune, LeavesAPollerThatGainsLessThanTheWeight) {
  const auto with = [](double poller_us, double cores) {
    return MakeProfile({100, 1000}, {{"SIP1", 1e18, [=](double) { return poller_us; }, 0, 400, cores},
                                     {"FIB1", 1e18, [](double) { return 1000.0; }, 0, 500, 0.13}});
  };
  EXPECT_EQ(Told("mutune", with(920, 0.96), "SIP1").Slow(500, Nanos(0)), "FIB1");
  EXPECT_EQ(Told("mutune", with(920, 0.96), "SIP1", {.cpu_weight = 0}).Slow(500, Nanos(0)), "SIP1");
  EXPECT_EQ(Told("mutune", with(700, 0.96), "FIB1").Slow(500, Nanos(0)), "SIP1");
  EXPECT_EQ(Told("mutune", with(700, 0.96), "FIB1", {.cpu_weight = 0.5}).Slow(500, Nanos(0)), "FIB1");
  EXPECT_EQ(Told("mutune", with(920, 0.17), "SIP1").Slow(500, Nanos(0)), "SIP1") << "hardly any CPU to save";
  Told told("mutune", with(920, 0.96), "SIP1");
  for (int s = 0; s < 30; ++s) EXPECT_EQ(told.Slow(100 + s * 20.0, seconds(s)), "FIB1") << s;
}

TEST(Mutune, AsThePaperHasItTakesTheLowestPredictionAlways) {
  Told told("mutune:paper", SteppedProfile(), "SDB1-50");
  EXPECT_EQ(told.Paper(999, milliseconds(0)), "SIP1");
  EXPECT_EQ(told.Paper(1001, milliseconds(1)), "SDP1-20");
  EXPECT_EQ(told.Paper(999, milliseconds(2)), "SIP1");
}

TEST(FixedWindow, CountsWhatCameBeforeItsEnd) {
  internal::FixedWindow window(milliseconds(5));
  EXPECT_FALSE(window.Update(At(Nanos(0)), 100).has_value());
  EXPECT_FALSE(window.Update(At(microseconds(4999)), 110).has_value());
  EXPECT_DOUBLE_EQ(window.Update(At(milliseconds(5)), 140).value(), 8000);
  EXPECT_FALSE(window.Update(At(microseconds(9999)), 150).has_value()) << "the next one ends at 10 ms";
  EXPECT_DOUBLE_EQ(window.Update(At(microseconds(12000)), 160).value(), 4000);
  EXPECT_DOUBLE_EQ(window.Update(At(milliseconds(15)), 161).value(), 200)
      << "ends do not move with late calls";
  EXPECT_DOUBLE_EQ(window.Update(At(milliseconds(35)), 165).value(), 200) << "four windows";
}

TEST(Tbd, DecidesAtTheEndOfEachWindowByItsCount) {
  Told told("tbd", SteppedProfile(), "SIP1");
  EXPECT_EQ(told.Arrivals(0, Nanos(0)), "SIP1");
  EXPECT_EQ(told.Arrivals(40, microseconds(4900)), "SIP1") << "not before the window ends";
  EXPECT_EQ(told.Arrivals(40, milliseconds(5)), "SDB1-50") << "8000/s";
  EXPECT_EQ(told.Arrivals(40, microseconds(9999)), "SDB1-50");
  EXPECT_EQ(told.Arrivals(44, milliseconds(10)), "SIP1") << "800/s";
  EXPECT_EQ(told.Arrivals(50, milliseconds(15)), "SDP1-20") << "1200/s";
}

TEST(Fm, VariesThePoolOfOneModelByTheTable) {
  Told told("fm", SteppedProfile(), "SIP1");
  EXPECT_EQ(told.Arrivals(0, Nanos(0)), "SDB1-8") << "never another model, from the beginning";
  EXPECT_EQ(told.Arrivals(5, milliseconds(5)), "SDB1-8") << "1000/s";
  EXPECT_EQ(told.Arrivals(45, milliseconds(9)), "SDB1-8") << "within the window";
  EXPECT_EQ(told.Arrivals(45, milliseconds(10)), "SDB1-50") << "8000/s";
  EXPECT_EQ(told.Arrivals(1000, milliseconds(15)), "SDB1-50") << "beyond the table: its last row";
  EXPECT_EQ(told.Arrivals(1001, milliseconds(20)), "SDB1-8");
  Told async("fm", SteppedProfile(), "AIP1-1", {.style = ServiceStyle::kContinuation});
  EXPECT_EQ(async.Arrivals(0, Nanos(0)), "ADB1-4-4");
}

TEST(Fm, ARowHoldsUpToItsLoad) {
  const Profile profile = MakeProfile({200, 400, 1000}, {{"SDB1-2", 500, [](double) { return 10.0; }},
                                                         {"SDB1-4", 1e18, [](double) { return 20.0; }}});
  Told told("fm", profile, "SDB1-2");
  EXPECT_EQ(told.Arrivals(0, Nanos(0)), "SDB1-2");
  EXPECT_EQ(told.Arrivals(2, milliseconds(5)), "SDB1-2") << "400/s";
  EXPECT_EQ(told.Arrivals(5, milliseconds(10)), "SDB1-4") << "600/s";
}

TEST(Ipi, PollsUnlessMoreThreadsAreActiveThanThereAreCpus) {
  Told told("ipi:SDB1-8", SteppedProfile(), "SDB1-8", {.cpus = 4});  // nine threads
  EXPECT_EQ(told.Blocked(4), "SDB1-8") << "five active";
  EXPECT_EQ(told.Blocked(5), "SDP1-8") << "four active";
  EXPECT_EQ(told.Blocked(0, Trigger::kArrival), "SDP1-8") << "only changes of the blocked count decide";
  EXPECT_EQ(told.Blocked(0, Trigger::kTimer), "SDP1-8");
  EXPECT_EQ(told.Blocked(4), "SDB1-8");
  Told elsewhere("ipi:SDB1-8", SteppedProfile(), "SIP1", {.cpus = 4});
  EXPECT_EQ(elsewhere.Blocked(9, Trigger::kTimer), "SDB1-8") << "begins with interrupts";
}

TEST(Ipi, TakesTheProfilesPeakSdbWithoutAConfig) {
  Told told("ipi", SteppedProfile(), "SIP1", {.cpus = 2});
  EXPECT_EQ(told.Blocked(0), "SDB1-50");
  EXPECT_EQ(told.Blocked(49), "SDP1-50");
}

TEST(LatencySketch, QuantilesAreRightToItsStep) {
  LatencySketch sketch;
  EXPECT_EQ(sketch.QuantileUs(0.99), 0);
  for (int i = 1; i <= 100000; ++i) sketch.Add(Nanos(i) * 100);  // 0.1 us to 10 ms
  EXPECT_NEAR(sketch.QuantileUs(0.99), 9900, 20);
  EXPECT_NEAR(sketch.QuantileUs(0.5), 5000, 10);
  EXPECT_NEAR(sketch.MeanUs(), 5000, 20);
  EXPECT_NEAR(sketch.P99AtLeastUs(), 9893.7, 20);
  LatencySketch half = sketch;
  half.Scale(0.5);
  EXPECT_NEAR(half.QuantileUs(0.99), sketch.QuantileUs(0.99), 1);
  EXPECT_NEAR(half.weight(), 50000, 1);
  half.Merge(sketch);
  EXPECT_NEAR(half.weight(), 150000, 1);
  LatencySketch extremes;
  extremes.Add(Nanos(-5));
  extremes.Add(std::chrono::hours(1));
  EXPECT_GT(extremes.QuantileUs(1), 1e8);
  EXPECT_LE(extremes.QuantileUs(0.5), 1.024);
}

TEST(LatencySketch, BucketsAscendAndContainTheirLatency) {
  size_t last = 0;
  for (int64_t ns = 1; ns < int64_t{1} << 38; ns += ns / 40 + 1) {
    const size_t bucket = LatencySketch::BucketOf(Nanos(ns));
    ASSERT_GE(bucket, last);
    ASSERT_LE(bucket, last + 1) << ns;
    ASSERT_LT(bucket, LatencySketch::kBuckets);
    last = bucket;
    LatencySketch one;
    one.Add(Nanos(ns));
    if (ns >= 1024 && bucket + 1 < LatencySketch::kBuckets) {
      ASSERT_NEAR(one.QuantileUs(0.5), static_cast<double>(ns) * 1e-3, static_cast<double>(ns) * 1e-3 / 16);
    }
  }
  EXPECT_EQ(last, LatencySketch::kBuckets - 1);
}

}  // namespace
}  // namespace curtail
