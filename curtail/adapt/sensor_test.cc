// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/sensor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

#include "curtail/base/rng.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kArrivalSeed = 20181008;

TimePoint TimeAt(Nanos t) { return TimePoint(t); }

// Poisson arrivals on a clock of their own.
class Arrivals {
 public:
  explicit Arrivals(uint64_t seed) : rng_(seed) { std::printf("seed %llu\n", (unsigned long long)seed); }
  TimePoint Next(double rate) {
    now_ += rng_.Exponential(1e9 / rate);
    return TimeAt(Nanos(static_cast<int64_t>(now_)));
  }
  TimePoint now() const { return TimeAt(Nanos(static_cast<int64_t>(now_))); }

 private:
  Rng rng_;
  double now_ = 1e9;
};

std::vector<TimePoint> RecentOf(const ArrivalRing& ring, size_t most = ArrivalRing::kMaxEntries) {
  std::vector<TimePoint> times(most);
  times.resize(ring.Recent(times));
  return times;
}

TEST(ArrivalRing, KeepsTheLastOnesYoungestFirst) {
  ArrivalRing ring;
  EXPECT_EQ(ring.entries(), 5);
  EXPECT_TRUE(RecentOf(ring).empty());
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(ring.Add(TimeAt(microseconds(i))), static_cast<uint64_t>(i));
    const std::vector<TimePoint> times = RecentOf(ring);
    ASSERT_EQ(times.size(), static_cast<size_t>(std::min(i + 1, 5)));
    for (size_t j = 0; j < times.size(); ++j)
      EXPECT_EQ(times[j], TimeAt(microseconds(i - static_cast<int>(j))));
  }
  EXPECT_EQ(ring.count(), 12u);
  EXPECT_EQ(RecentOf(ring, 2), (std::vector<TimePoint>{TimeAt(microseconds(11)), TimeAt(microseconds(10))}));
  EXPECT_TRUE(RecentOf(ring, 0).empty());
}

TEST(ArrivalRing, SortsTimesThatCameOutOfOrder) {
  ArrivalRing ring(4);
  for (int t : {30, 10, 40, 20}) ring.Add(TimeAt(microseconds(t)));
  EXPECT_EQ(RecentOf(ring), (std::vector<TimePoint>{TimeAt(microseconds(40)), TimeAt(microseconds(30)),
                                                    TimeAt(microseconds(20)), TimeAt(microseconds(10))}));
  EXPECT_EQ(RecentOf(ring, 2), (std::vector<TimePoint>{TimeAt(microseconds(40)), TimeAt(microseconds(30))}));
}

TEST(ArrivalRing, BringsItsSizeWithinTheLimits) {
  EXPECT_EQ(ArrivalRing(-1).entries(), ArrivalRing::kMinEntries);
  EXPECT_EQ(ArrivalRing(1 << 30).entries(), ArrivalRing::kMaxEntries);
  ArrivalRing longest(ArrivalRing::kMaxEntries);
  for (int i = 0; i < 3 * ArrivalRing::kMaxEntries; ++i) longest.Add(TimeAt(microseconds(i)));
  const std::vector<TimePoint> times = RecentOf(longest);
  ASSERT_EQ(times.size(), static_cast<size_t>(ArrivalRing::kMaxEntries));
  EXPECT_EQ(times.back(), TimeAt(microseconds(2 * ArrivalRing::kMaxEntries)));
}

// Property: whatever writers interleave, a reader gets times that were written, in order, and never more or
// newer ones than there are; once all is quiet the ring holds the last times of all. First by one thread.
void CheckRing(int writers, int entries) {
  constexpr int64_t kEach = 20000;
  ArrivalRing ring(entries);
  std::atomic<int64_t> clock{0};
  std::atomic<int> running{writers};
  const auto write = [&] {
    for (int64_t i = 0; i < kEach; ++i) ring.Add(TimeAt(Nanos(clock.fetch_add(1) + 1)));
    running.fetch_sub(1);
  };
  const auto check = [&](size_t most) {
    const std::vector<TimePoint> times = RecentOf(ring, most);
    const int64_t latest = clock.load();
    ASSERT_LE(times.size(), std::min<size_t>(most, static_cast<size_t>(entries)));
    ASSERT_TRUE(std::is_sorted(times.rbegin(), times.rend()));
    for (TimePoint t : times) {
      ASSERT_GE(t.time_since_epoch().count(), 1);
      ASSERT_LE(t.time_since_epoch().count(), latest);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < writers; ++i) threads.emplace_back(write);
  do check(static_cast<size_t>(entries) - 1);
  while (running.load() > 0 && !testing::Test::HasFatalFailure());
  for (std::thread& thread : threads) thread.join();
  check(ArrivalRing::kMaxEntries);
  EXPECT_EQ(ring.count(), static_cast<uint64_t>(writers * kEach));
  ASSERT_EQ(RecentOf(ring).size(), static_cast<size_t>(entries));
  if (writers == 1) {
    EXPECT_EQ(RecentOf(ring).back(), TimeAt(Nanos(kEach - entries + 1)));
  }
}

TEST(ArrivalRing, OneWriterAndAReader) { CheckRing(1, 5); }
TEST(ArrivalRing, ManyWritersStress) {
  CheckRing(8, 5);
  CheckRing(6, 64);
}

TEST(Estimators, AreExactOnEvenGaps) {
  std::vector<TimePoint> times;  // youngest first, 1 ms apart
  for (int i = 5; i > 0; --i) times.push_back(TimeAt(milliseconds(i)));
  EXPECT_DOUBLE_EQ(PaperRate(times), 1000);
  EXPECT_DOUBLE_EQ(UnbiasedRate(times), 750);
  EXPECT_DOUBLE_EQ(RateWithSilence(times, TimeAt(milliseconds(5))), 750);
  EXPECT_DOUBLE_EQ(RateWithSilence(times, TimeAt(milliseconds(11))), 300);
  EXPECT_DOUBLE_EQ(RateWithSilence(times, TimeAt(milliseconds(3))), 750)
      << "a clock that lags changes nothing";
}

TEST(Estimators, NeedEnoughArrivals) {
  const std::vector<TimePoint> two = {TimeAt(milliseconds(2)), TimeAt(milliseconds(1))};
  EXPECT_EQ(PaperRate(std::span(two).first(1)), 0);
  EXPECT_DOUBLE_EQ(PaperRate(two), 1000);
  EXPECT_EQ(UnbiasedRate(two), 0);
  EXPECT_EQ(RateWithSilence(two, TimeAt(seconds(1))), 0);
  const std::vector<TimePoint> same(5, TimeAt(seconds(1)));
  EXPECT_TRUE(std::isfinite(PaperRate(same)) && PaperRate(same) > 1e8);
}

TEST(Estimators, ErlangQuantilesMatchKnownValues) {
  EXPECT_NEAR(ErlangQuantile(1, 0.5), std::log(2), 1e-9);
  EXPECT_NEAR(ErlangQuantile(1, 1e-6), 1.0000005e-6, 1e-12);
  // Half of the chi-square quantiles with 8 and 64 degrees of freedom, from tables.
  EXPECT_NEAR(ErlangQuantile(4, 0.95), 15.5073 / 2, 1e-4);
  EXPECT_NEAR(ErlangQuantile(4, 0.05), 2.7326 / 2, 1e-4);
  EXPECT_NEAR(ErlangQuantile(32, 0.95), 83.6753 / 2, 1e-4);
}

struct Moments {
  double mean;
  double cv;  // standard deviation over the mean
};

// Of an estimator over rings of n arrivals, for rate 1000/s, at `share` of the way to the next arrival.
template <class F>
Moments Measure(int n, F estimate) {
  Arrivals arrivals(kArrivalSeed + static_cast<uint64_t>(n));
  ArrivalRing ring(n);
  for (int i = 0; i < n; ++i) ring.Add(arrivals.Next(1000));
  constexpr int kRounds = 60000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kRounds; ++i) {
    for (int j = 0; j < n; ++j) ring.Add(arrivals.Next(1000));  // rings without a common gap
    const double rate = estimate(RecentOf(ring));
    sum += rate, squares += rate * rate;
  }
  const double mean = sum / kRounds;
  return {mean, std::sqrt(squares / kRounds - mean * mean) / mean};
}

TEST(Estimators, HaveTheDerivedBiasAndDeviation) {
  for (int n : {5, 9, 33}) {
    SCOPED_TRACE(n);
    const Moments paper = Measure(n, [](const auto& times) { return PaperRate(times); });
    const Moments unbiased = Measure(n, [](const auto& times) { return UnbiasedRate(times); });
    const double cv = 1 / std::sqrt(n - 3);
    const double error = 5 * cv / std::sqrt(60000);  // five standard errors
    EXPECT_NEAR(paper.mean, 1000.0 * (n - 1) / (n - 2), 1500 * error);
    EXPECT_NEAR(unbiased.mean, 1000, 1000 * error);
    // The fourth moment is infinite at n = 5, so its deviation is known less well.
    EXPECT_NEAR(unbiased.cv, cv, n == 5 ? 0.1 : 0.03 * cv);
  }
}

TEST(Estimators, FiveArrivalsAreOftenTwiceTooMany) {
  Arrivals arrivals(kArrivalSeed);
  ArrivalRing ring(5);
  int above_twice = 0, below_half = 0;
  constexpr int kRounds = 40000;
  for (int i = 0; i < kRounds; ++i) {
    for (int j = 0; j < 5; ++j) ring.Add(arrivals.Next(1000));
    const double rate = UnbiasedRate(RecentOf(ring));
    above_twice += rate > 2000, below_half += rate < 500;
  }
  // P(Gamma(4) < 1.5) = 6.6 %, P(Gamma(4) > 6) = 15 %; for the paper's form P(Gamma(4) < 2) = 14 %, P(> 8) = 4 %.
  EXPECT_NEAR(above_twice / double{kRounds}, 0.0656, 0.006);
  EXPECT_NEAR(below_half / double{kRounds}, 0.1512, 0.009);
}

TEST(Estimators, AtAnyMomentTheRateWithSilenceIsAsDerived) {
  Arrivals arrivals(kArrivalSeed);
  Rng rng(kArrivalSeed);
  ArrivalRing ring(9);
  for (int i = 0; i < 9; ++i) ring.Add(arrivals.Next(1000));
  double sum = 0;
  constexpr int kRounds = 60000;
  TimePoint moment = arrivals.now(), next = arrivals.Next(1000);
  for (int i = 0; i < kRounds; ++i) {
    moment += Nanos(static_cast<int64_t>(rng.Uniform01() * 2e7));  // independent of the arrivals
    for (; next <= moment; next = arrivals.Next(1000)) ring.Add(next);
    sum += RateWithSilence(RecentOf(ring), moment);
  }
  EXPECT_NEAR(sum / kRounds, 1000.0 * 7 / 8, 12);
}

// Feeds arrivals to an estimator that is asked at every k-th of them.
struct Feed {
  explicit Feed(uint64_t seed, SensorOptions options = {}) : arrivals(seed), estimator(options) {}
  Rates Run(double rate, int n, int every = 1) {
    Rates rates;
    for (int i = 0; i < n; ++i) {
      const TimePoint now = arrivals.Next(rate);
      if (estimator.Add(now) % static_cast<uint64_t>(every) == 0) rates = estimator.Update(now);
    }
    return rates;
  }
  Arrivals arrivals;
  LoadEstimator estimator;
};

TEST(LoadEstimator, KnowsNothingBeforeFiveArrivals) {
  Feed feed(kArrivalSeed);
  EXPECT_EQ(feed.estimator.Update(feed.arrivals.now()).slow, 0);
  EXPECT_EQ(feed.Run(1000, 4).slow, 0);
  EXPECT_GT(feed.Run(1000, 1).slow, 0);
  EXPECT_EQ(feed.estimator.changes(), 1u);
}

TEST(LoadEstimator, SlowIsUnbiasedAndAsSteadyAsDerivedAtASteadyLoad) {
  for (int every : {1, 4}) {
    for (double rate : {100.0, 1000.0, 8000.0}) {
      SCOPED_TRACE(testing::Message() << rate << "/s, asked every " << every);
      Feed feed(kArrivalSeed + static_cast<uint64_t>(rate));
      feed.Run(rate, static_cast<int>(5 * rate), every);
      const uint64_t changes = feed.estimator.changes();
      double sum = 0, squares = 0;
      constexpr int kRounds = 400;
      for (int i = 0; i < kRounds; ++i) {  // half a second apart: about 200 independent values
        const double slow = feed.Run(rate, static_cast<int>(rate / 2), every).slow;
        sum += slow, squares += slow * slow;
      }
      const double mean = sum / kRounds;
      const double cv = 1 / std::sqrt(2 * rate);
      EXPECT_NEAR(mean, rate, rate * (5 * cv / std::sqrt(130) + 2 / rate));
      EXPECT_NEAR(std::sqrt(squares / kRounds - mean * mean) / rate, cv, 0.35 * cv);
      EXPECT_LE(feed.estimator.changes() - changes, 6u) << "false alarms in 200 s";
    }
  }
}

TEST(LoadEstimator, SlowIsAtTheNewLevelWithinMilliseconds) {
  Feed feed(kArrivalSeed);
  feed.Run(100, 1000);
  const TimePoint jump = feed.arrivals.now();
  int needed = 0;
  while (feed.Run(8000, 1).slow < 4000 && needed < 1000) ++needed;
  std::printf("a jump from 100 to 8000/s: %d arrivals, %.2f ms\n", needed + 1,
              std::chrono::duration<double, std::milli>(feed.arrivals.now() - jump).count());
  EXPECT_LT(feed.arrivals.now() - jump, milliseconds(5));
  EXPECT_NEAR(feed.Run(8000, 8000).slow, 8000, 800);
  const TimePoint drop = feed.arrivals.now();
  while (feed.Run(100, 1).slow > 200 && feed.arrivals.now() - drop < seconds(5)) continue;
  EXPECT_LT(feed.arrivals.now() - drop, milliseconds(300));
}

TEST(LoadEstimator, TheHighestPlausibleRateIsAboveTheTrueOneAndComesDownToIt) {
  int below = 0, above = 0;
  constexpr int kJumps = 200;
  for (int i = 0; i < kJumps; ++i) {
    Feed feed(kArrivalSeed + static_cast<uint64_t>(i));
    feed.Run(1000, 200);
    // Of seven arrivals that betray the jump two or three came before it.
    Rates rates;
    for (int n = 0; n < 100 && (rates = feed.Run(8000, 1)).slow < 2000;) ++n;
    below += rates.high < 8000 * 0.8;
    above += rates.high > 8000 * 4;
    EXPECT_NEAR(feed.Run(8000, 16000).high, 8000, 8000 * 0.1);
  }
  EXPECT_LE(below, kJumps / 4);
  EXPECT_LE(above, kJumps / 10);
}

TEST(LoadEstimator, SilenceBringsAllButThePapersRateDown) {
  Feed feed(kArrivalSeed);
  const Rates before = feed.Run(1000, 5000);
  const TimePoint end = feed.arrivals.now();
  Rates rates;
  for (int ms = 5; ms <= 1000; ms += 5) {
    const Rates next = feed.estimator.Update(end + milliseconds(ms));
    EXPECT_TRUE(ms == 5 || next.slow <= rates.slow) << ms;
    rates = next;
  }
  EXPECT_EQ(rates.paper, before.paper) << "a ring without arrivals never ages";
  EXPECT_LT(rates.fast, 3.1);
  EXPECT_LT(rates.slow, 50);
}

TEST(LoadEstimator, ABurstIsNoHighLoad) {
  LoadEstimator estimator({});
  Rates rates;
  double highest = 0;
  for (int i = 0; i < 3000; ++i) {  // three at once, 300 times a second
    const TimePoint now = TimeAt(seconds(1) + i / 3 * Nanos(3'333'333));
    estimator.Add(now);
    rates = estimator.Update(now);
    if (i > 300) highest = std::max(highest, rates.slow);
  }
  EXPECT_NEAR(rates.slow, 900, 20);
  EXPECT_LT(highest, 1000);
}

// The server reads nothing for 5 to 100 ms now and then, and after that all that came. Two such stalls within a few
// arrivals look like a fall.
TEST(LoadEstimator, AStallIsNeitherAFallNorARise) {
  for (const double rate : {300.0, 1300.0, 5000.0}) {
    Feed feed(kArrivalSeed + static_cast<uint64_t>(rate));
    Rng rng(kArrivalSeed);
    feed.Run(rate, static_cast<int>(4 * rate), 8);
    int falls = 0, rises = 0;
    for (int stall = 0; stall < 200; ++stall) {
      double lowest = rate, highest = rate;
      const auto note = [&](const Rates& rates) {
        lowest = std::min(lowest, rates.slow), highest = std::max(highest, rates.slow);
      };
      const TimePoint begin = feed.arrivals.now();
      const Nanos length(static_cast<int64_t>(5e6 + 95e6 * rng.Uniform01()));
      if (stall % 2 == 0) note(feed.estimator.Update(begin + length / 2));
      TimePoint read = begin + length, came;
      while ((came = feed.arrivals.Next(rate)) < read) {
        feed.estimator.Add(read);
        note(feed.estimator.Update(read));
        read += std::chrono::microseconds(20);
      }
      feed.estimator.Add(came);
      for (int n = 33 + static_cast<int>(rate * 0.6 * rng.Uniform01()); n > 0; --n) note(feed.Run(rate, 1));
      falls += lowest < 0.6 * rate, rises += highest > 1.4 * rate;
    }
    std::printf("%.0f/s: of 200 stalls %d taken for a fall, %d for a rise\n", rate, falls, rises);
    EXPECT_LE(falls + rises, 2) << rate;  // short ones, of which nine requests came by chance
  }
}

TEST(LoadEstimator, ARiseAfterAStallIsNoticed) {
  Feed feed(kArrivalSeed);
  feed.Run(1000, 3000);
  const TimePoint stalled = feed.arrivals.now() + milliseconds(20);
  for (TimePoint came; (came = feed.arrivals.Next(1000)) < stalled;) feed.estimator.Add(stalled);
  while (feed.Run(8000, 1).slow < 4000 && feed.arrivals.now() < stalled + seconds(1)) continue;
  EXPECT_LT(feed.arrivals.now() - stalled, milliseconds(40));
}

TEST(LoadEstimator, TakesTimesThatGoBack) {
  LoadEstimator estimator({});
  for (int i = 0; i < 100; ++i) estimator.Add(TimeAt(milliseconds(1000 + i)));
  const Rates rates = estimator.Update(TimeAt(milliseconds(1099)));
  const Rates earlier = estimator.Update(TimeAt(milliseconds(500)));
  EXPECT_EQ(rates.fast, earlier.fast);
  EXPECT_EQ(rates.slow, earlier.slow);
}

TEST(LoadEstimator, OnlyArrivalsThatComeTooSoonAreHasty) {
  const uint64_t seed = 20181008;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Rng rng(seed);
  LoadEstimator load{SensorOptions{}};
  TimePoint now(std::chrono::seconds(1));
  int hasty = 0;
  constexpr int kArrivals = 20000;
  for (int i = 0; i < kArrivals; ++i) {
    now += Nanos(static_cast<int64_t>(-std::log1p(-rng.Uniform01()) * 1e9 / 100));
    hasty += load.Hasty(load.Add(now), now);
    load.Update(now);
  }
  EXPECT_GT(hasty, 0);
  EXPECT_LT(hasty, kArrivals / 300) << "one in a thousand is meant";
  int late = 0;
  while (true) {
    now += std::chrono::microseconds(300);
    if (load.Hasty(load.Add(now), now)) break;
    ASSERT_LT(++late, 6) << "four gaps are enough at 30 times the rate";
  }
}

}  // namespace
}  // namespace curtail
