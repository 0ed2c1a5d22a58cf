// SPDX-License-Identifier: Apache-2.0
//
// The online policy in a simulated world: each config is a queue with a service time and a capacity, the load
// wanders, and half way the machine changes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "curtail/adapt/policy_kind.h"
#include "curtail/adapt/profile_testing.h"
#include "curtail/base/rng.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

constexpr Nanos kWindow = std::chrono::milliseconds(250);
constexpr double kWindowS = 0.25;

struct Queue {
  const char* config;
  double service_us;
  double capacity;  // requests a second

  // Mean of an M/M/1 queue; the p99 of an exponential time is ln(100) means.
  double MeanUs(double load) const { return load < capacity ? service_us / (1 - load / capacity) : INFINITY; }
  double P99Us(double load) const { return MeanUs(load) * std::log(100); }
};

const std::vector<Queue> kBefore = {{"SIB1", 420, 2300},   {"SIP1", 300, 3000},     {"SDP1-20", 500, 7000},
                                    {"SDB1-8", 620, 9000}, {"SDB1-50", 600, 14000}, {"FIB1", 450, 9500},
                                    {"FIP1", 330, 9000}};
// Polling has become dear: a neighbour took a CPU.
const std::vector<Queue> kAfter = {{"SIB1", 450, 2100},   {"SIP1", 900, 1050},     {"SDP1-20", 1500, 3500},
                                   {"SDB1-8", 650, 8500}, {"SDB1-50", 640, 13000}, {"FIB1", 480, 9000},
                                   {"FIP1", 1100, 3600}};

// A World runs a policy, a window a step, and adds up how far from the best possible it is.
class World {
 public:
  // The server begins with `config`, which the queues must have.
  World(std::unique_ptr<Policy> policy, uint64_t seed, std::string config = "SDB1-8")
      : policy_(std::move(policy)), rng_(seed), config_(std::move(config)) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  }

  struct Sums {
    double ratio = 0;  // to the best p99, summed over the windows
    int windows = 0;
    int saturated = 0;  // windows under a config that did not keep up
    int on_trial = 0;
    int trial_saturated = 0;
    int knew_better =
        0;  // trials at loads that the config was seen to be too weak for in the last ten minutes
    double Regret() const { return ratio / windows; }
  };

  // Runs for `seconds`, with the load from `load(t)`; t goes on from the last call.
  template <class Load>
  Sums Run(const std::vector<Queue>& queues, double seconds, Load load) {
    Sums sums;
    for (const double end = t_ + seconds; t_ < end; t_ += kWindowS) Step(queues, load(t_), sums);
    return sums;
  }
  // Runs until a config is on trial, at a steady load; false if that takes more than an hour.
  bool RunUntilTrial(const std::vector<Queue>& queues, double load) {
    Sums sums;
    for (const double end = t_ + 3600; t_ < end && !trial_; t_ += kWindowS) Step(queues, load, sums);
    return trial_;
  }
  // Asks between two windows.
  Choice AskAt(double load) {
    Signals s;
    s.now = TimePoint(Nanos(static_cast<int64_t>(t_ * 1e9)));
    s.rates.slow = load;
    s.current = ConfigOf(config_);
    return policy_->Decide(s);
  }
  // Configs that block use so many CPUs from now on.
  void SetCores(double cores) { cores_ = cores; }
  // From now on the machine itself slows everything down: by turns of some seconds, and in single windows.
  void MakeNoisy() { noisy_ = true; }
  const std::string& config() const { return config_; }
  bool on_trial() const { return trial_; }
  std::map<std::string, int>& chosen() { return chosen_; }

 private:
  void Step(const std::vector<Queue>& queues, double load, Sums& sums) {
    const Queue& queue = Find(queues, config_);
    double best = INFINITY;
    for (const Queue& q : queues) best = std::min(best, q.P99Us(load));
    const bool saturated = load >= queue.capacity * 0.999;
    const double ratio = saturated ? 20 : std::min(queue.P99Us(load) / best, 20.0);
    sums.ratio += ratio, ++sums.windows, sums.saturated += saturated;
    if (trial_) {
      const auto seen = seen_saturated_.find(config_);
      sums.knew_better +=
          seen != seen_saturated_.end() && load > seen->second.load * 1.5 && t_ - seen->second.when < 600;
    }
    if (saturated) seen_saturated_[config_] = {load, t_};
    sums.on_trial += trial_, sums.trial_saturated += trial_ && saturated;
    ++chosen_[config_];
    Signals s;
    const LatencyWindow window = Serve(queue, load);
    s.now = TimePoint(Nanos(static_cast<int64_t>((t_ + kWindowS) * 1e9)));
    s.rates.slow = load * (1 + 0.06 * (rng_.Uniform01() - 0.5));
    s.current = ConfigOf(config_);
    s.window = &window;
    Take(policy_->Decide(s), true);
    // The next load is seen within milliseconds.
    s.window = nullptr;
    s.current = ConfigOf(config_);
    Take(policy_->Decide(s), false);
  }
  void Take(const Choice& choice, bool window) {
    const std::string next = choice.config.ToString();
    if (window || next != config_) trial_ = choice.reason == "trial";
    config_ = next;
  }

  // The factor by which the machine slows every config in this window: its logarithm is an autoregressive process.
  double Noise() {
    if (!noisy_) return 1;
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += rng_.Uniform01();
    turn_ = 0.92 * turn_ + 0.4 * 0.35 * (sum - 6);
    return std::exp(turn_) * (rng_.Uniform01() < 0.05 ? 3 : 1);
  }

  LatencyWindow Serve(const Queue& queue, double load) {
    LatencyWindow window{.length = kWindow};
    const bool polls = ConfigOf(queue.config).model.reception == Reception::kPoll;
    window.cpu = Nanos(static_cast<int64_t>((polls ? std::max(cores_, 1.0) : cores_) * kWindowS * 1e9));
    for (double t = rng_.Exponential(1 / load); t < kWindowS; t += rng_.Exponential(1 / load))
      ++window.arrivals;
    const auto done = std::min<uint64_t>(window.arrivals, static_cast<uint64_t>(queue.capacity * kWindowS));
    const double mean = std::min(queue.MeanUs(load), 2e5) * Noise();
    for (uint64_t i = 0; i < done; ++i) {
      window.latencies.Add(Nanos(static_cast<int64_t>(rng_.Exponential(mean) * 1e3)));
    }
    return window;
  }
  static const Queue& Find(const std::vector<Queue>& queues, const std::string& config) {
    const auto found =
        std::find_if(queues.begin(), queues.end(), [&](const Queue& q) { return q.config == config; });
    if (found != queues.end()) return *found;
    ADD_FAILURE() << "no queue of the test has config " << config;
    return queues.front();
  }

  std::unique_ptr<Policy> policy_;
  Rng rng_;
  std::string config_;
  bool trial_ = false;
  bool noisy_ = false;
  double cores_ = 0;
  double turn_ = 0;
  double t_ = 1;
  struct Seen {
    double load, when;
  };
  std::map<std::string, Seen> seen_saturated_;
  std::map<std::string, int> chosen_;
};

PolicyOptions Options(uint64_t seed, const std::vector<Queue>& queues = kBefore) {
  PolicyOptions options;
  options.seed = seed;
  for (const Queue& q : queues) options.configs.push_back(ConfigOf(q.config));
  return options;
}

std::unique_ptr<Policy> Make(const char* spec, uint64_t seed = 1, const Profile* profile = nullptr) {
  absl::StatusOr<std::unique_ptr<Policy>> policy = MakePolicy(spec, profile, Options(seed));
  EXPECT_TRUE(policy.ok()) << policy.status();
  return *std::move(policy);
}

// From 150 to 7500 and back in ten minutes.
double Wandering(double t) {
  return 150 * std::exp(std::log(50) * (0.5 - 0.5 * std::cos(t * 2 * M_PI / 600)));
}

World::Sums RunStatic(const char* spec, const std::vector<Queue>& queues) {
  World world(Make(spec), 5);
  return world.Run(queues, 600, Wandering);
}

TEST(Online, ComesWithinATenthOfTheOracleAndBackAfterADrift) {
  for (uint64_t seed : {1, 2, 3}) {
    World world(Make("online", seed), seed);
    const World::Sums first = world.Run(kBefore, 3000, Wandering);
    const World::Sums learnt = world.Run(kBefore, 1800, Wandering);
    const World::Sums drift = world.Run(kAfter, 3000, Wandering);
    const World::Sums relearnt = world.Run(kAfter, 1800, Wandering);
    std::printf(
        "p99 over the oracle's: first %.3f, learnt %.3f, drift %.3f, relearnt %.3f; saturated %d %d %d %d; "
        "on trial %d of %d\n",
        first.Regret(), learnt.Regret(), drift.Regret(), relearnt.Regret(), first.trial_saturated,
        learnt.trial_saturated, drift.trial_saturated, relearnt.trial_saturated, learnt.on_trial,
        learnt.windows);
    EXPECT_LT(learnt.Regret(), 1.10);
    EXPECT_LT(drift.Regret(), 1.20);
    EXPECT_LT(relearnt.Regret(), 1.10);
    EXPECT_LE(learnt.on_trial, 0.02 * learnt.windows);
    for (const char* spec : {"static:SDB1-50", "static:SIP1", "static:SDP1-20"}) {
      EXPECT_LT(first.Regret(), RunStatic(spec, kBefore).Regret()) << spec << ", learning included";
      EXPECT_LT(drift.Regret(), RunStatic(spec, kAfter).Regret()) << spec;
    }
    EXPECT_LT(drift.Regret(), RunStatic("static:FIP1", kAfter).Regret());
    // A window to find out, and then none: the boundary lies within a bucket for some configs.
    EXPECT_LE(learnt.trial_saturated, 3);
    EXPECT_LE(relearnt.trial_saturated, 6);
    EXPECT_EQ(first.knew_better + learnt.knew_better + drift.knew_better + relearnt.knew_better, 0);
  }
}

TEST(Online, NeverTriesWhatIsKnownToSaturate) {
  std::vector<TestCurve> curves;
  for (const Queue& q : kBefore) {
    curves.push_back({q.config, q.capacity * 0.9, [&q](double load) { return q.P99Us(load); }});
  }
  const Profile profile =
      MakeProfile({50, 100, 200, 400, 800, 1600, 2500, 3200, 5000, 6400, 8000, 12000}, curves);
  for (uint64_t seed : {11, 12, 13}) {
    World world(Make("online", seed, &profile), seed);
    const World::Sums sums = world.Run(kBefore, 3600, Wandering);
    EXPECT_EQ(sums.saturated, 0) << "seed " << seed;
    EXPECT_GT(sums.on_trial, 0) << "it does explore";
  }
}

TEST(Online, BeginsWellWithAProfileAndLeavesItWhenTheMachineIsAnother) {
  std::vector<TestCurve> curves;
  for (const Queue& q : kBefore) {
    curves.push_back({q.config, q.capacity * 0.9, [&q](double load) { return q.P99Us(load); }});
  }
  const Profile profile =
      MakeProfile({50, 100, 200, 400, 800, 1600, 2500, 3200, 5000, 6400, 8000, 12000}, curves);
  World at_home(Make("online", 21, &profile), 21);
  const double first = at_home.Run(kBefore, 600, Wandering).Regret();
  World without(Make("online", 21), 21);
  const double learning = without.Run(kBefore, 600, Wandering).Regret();
  std::printf("first ten minutes: %.3f with a profile, %.3f without\n", first, learning);
  EXPECT_LT(first, 1.10);
  EXPECT_LT(first, learning);
  World elsewhere(Make("online", 22, &profile), 22);
  elsewhere.Run(kAfter, 2400, Wandering);
  const World::Sums later = elsewhere.Run(kAfter, 1200, Wandering);
  World follows(Make("mutune", 22, &profile), 22);
  const World::Sums fixed = follows.Run(kAfter, 1200, Wandering);
  std::printf("elsewhere: online %.3f, mutune with the wrong profile %.3f\n", later.Regret(), fixed.Regret());
  EXPECT_LT(later.Regret(), 1.12);
  EXPECT_LT(later.Regret(), fixed.Regret());
}

TEST(Online, IsDeterministicGivenTheSeed) {
  World one(Make("online", 31), 31), two(Make("online", 31), 31), other(Make("online", 32), 31);
  const auto load = [](double) { return 700.0; };
  const World::Sums a = one.Run(kBefore, 600, load), b = two.Run(kBefore, 600, load);
  EXPECT_EQ(a.ratio, b.ratio);
  EXPECT_EQ(one.chosen(), two.chosen());
  EXPECT_NE(a.ratio, other.Run(kBefore, 600, load).ratio) << "the order of trials is the seed's";
}

TEST(Online, DoesNotExploreWithoutRoomBelowTheSlo) {
  PolicyOptions options = Options(41);
  options.slo = std::chrono::microseconds(1300);  // below all p99
  World world(MakePolicy("online", nullptr, options).value(), 41);
  const World::Sums tight = world.Run(kBefore, 900, [](double) { return 700.0; });
  EXPECT_EQ(tight.on_trial, 0);
}

TEST(Online, ATrialEndsTheMomentTheLoadLeavesItsBucket) {
  for (double factor : {0.5, 1.0, 2.0}) {
    World world(Make("online", 61), 61);
    ASSERT_TRUE(world.RunUntilTrial(kBefore, 724));  // 2^9.5, the middle of a bucket
    const Choice choice = world.AskAt(724 * factor);
    EXPECT_EQ(choice.config == ConfigOf(world.config()), factor == 1) << factor << " " << choice.reason;
  }
}

TEST(Online, AMomentOfAnotherLoadMovesNothingBetweenEquals) {
  const std::vector<Queue> queues = {{"FIB1", 450, 9500}, {"SDB1-8", 440, 9500}};
  int asked = 0;
  for (uint64_t seed = 91; seed < 101; ++seed) {
    World world(MakePolicy("online", nullptr, Options(seed, queues)).value(), seed, "FIB1");
    world.Run(queues, 1800, [](double) { return 700.0; });
    if (world.on_trial()) continue;
    ++asked;
    for (const double load : {1000.0, 1300.0})
      EXPECT_EQ(world.AskAt(load).config, ConfigOf(world.config())) << load;
  }
  EXPECT_GT(asked, 5);
}

TEST(Online, AConfigOfHalfTheP99WinsSoon) {
  const std::vector<Queue> queues = {{"FIB1", 500, 50000},    {"SDB1-8", 250, 50000},
                                     {"SDB1-50", 520, 50000}, {"SDB1-4", 540, 50000},
                                     {"FDB1-2", 600, 50000},  {"ADB1-2-2", 560, 50000}};
  // Rates and seconds: trials are paid for by requests.
  for (const auto& [load, seconds] : {std::pair(300.0, 600), {1500.0, 120}, {6000.0, 120}}) {
    int won = 0;
    for (uint64_t seed = 121; seed < 131; ++seed) {
      World world(MakePolicy("online", nullptr, Options(seed, queues)).value(), seed, "FIB1");
      world.Run(queues, seconds, [rate = load](double) { return rate; });
      won += world.config() == "SDB1-8" ? 1 : 0;
    }
    EXPECT_GE(won, 8) << "of 10, at " << load << "/s";
  }
}

TEST(Online, ALoadThatBeginsCrossesOthersWithoutASwitch) {
  // The other config was lucky for so many windows at 4,000/s.
  for (const int lucky : {1, 12}) {
    PolicyOptions options;
    options.configs = {ConfigOf("FIB1"), ConfigOf("SDB1-8")};
    const std::unique_ptr<Policy> policy = MakePolicy("online", nullptr, options).value();
    TimePoint now{};
    // A window of this load whose requests took so long each.
    const auto serve = [&](const char* config, double load, Nanos latency) {
      LatencyWindow window{.length = std::chrono::milliseconds(250)};
      window.arrivals = static_cast<uint64_t>(load / 4);
      for (uint64_t i = 0; i < window.arrivals; ++i) window.latencies.Add(latency);
      Signals s;
      s.now = now += window.length;
      s.rates.slow = load;
      s.current = ConfigOf(config);
      s.window = &window;
      return policy->Decide(s);
    };
    constexpr Nanos kUsual = std::chrono::milliseconds(2), kLucky = std::chrono::milliseconds(1);
    serve("FIB1", 8000, kUsual);
    serve("FIB1", 4000, kUsual);
    for (int i = 0; i < lucky; ++i) serve("SDB1-8", 4000, kLucky);
    serve("FIB1", 8000, kUsual);
    // The load crosses 4,000/s.
    EXPECT_EQ(serve("FIB1", 4000, kUsual).config, ConfigOf("FIB1"));
    EXPECT_EQ(serve("FIB1", 8000, kUsual).config, ConfigOf("FIB1"));
    // It stays there.
    Choice choice;
    int windows = 0;
    for (; windows < 20 && choice.config != ConfigOf("SDB1-8"); ++windows)
      choice = serve("FIB1", 4000, kUsual);
    if (lucky == 1) {
      EXPECT_EQ(windows, 20) << "what is known from a moment moves nothing; " << choice.reason;
    } else {
      EXPECT_EQ(choice.reason, "known to be better");
      EXPECT_EQ(windows, 6)
          << "of a quarter of a second: it has fallen a second after it last rose; one of dwell";
    }
  }
}

TEST(Online, ANoisyMachineDoesNotMakeItWander) {
  const std::vector<Queue> queues = {{"FIB1", 400, 9500},    {"SDB1-8", 420, 9000}, {"SDB1-50", 440, 9000},
                                     {"SDP1-20", 560, 7000}, {"SIB1", 450, 2300},   {"FDB1-2", 600, 9000}};
  const auto load = [](double) { return 1200.0; };
  double worst = 0, sum = 0;
  for (uint64_t seed = 101; seed < 111; ++seed) {
    PolicyOptions options = Options(seed, queues);
    options.slo = std::chrono::milliseconds(50);
    World world(MakePolicy("online", nullptr, options).value(), seed, "FIB1");
    world.MakeNoisy();
    world.Run(queues, 60, load);
    const World::Sums after_a_minute = world.Run(queues, 240, load);
    worst = std::max(worst, after_a_minute.Regret()), sum += after_a_minute.Regret();
    std::printf("p99 over the oracle's: %.3f; on trial %d of %d; FIB1 %d\n", after_a_minute.Regret(),
                after_a_minute.on_trial, after_a_minute.windows, world.chosen()["FIB1"]);
  }
  EXPECT_LT(worst, 1.1);
  EXPECT_LT(sum / 10, 1.05);
}

TEST(Online, TrialsThatPromiseNothingTakeFewerRequestsThanAP99Forgives) {
  const std::vector<Queue> queues = {{"FIB1", 400, 20000},    {"SDB1-8", 700, 20000}, {"SDB1-50", 720, 20000},
                                     {"SDP1-20", 640, 20000}, {"SIB1", 650, 20000},   {"FDB1-2", 600, 20000}};
  const auto load = [](double) { return 5000.0; };
  for (uint64_t seed = 141; seed < 146; ++seed) {
    World world(MakePolicy("online", nullptr, Options(seed, queues)).value(), seed, "FIB1");
    const World::Sums first = world.Run(queues, 60, load);
    EXPECT_GE(first.on_trial, 4) << "each that can hold the requests has been tried";
    const World::Sums then = world.Run(queues, 600, load);
    EXPECT_LT(then.on_trial, 0.01 * then.windows) << seed;
  }
}

TEST(Online, OneStallOfTheMachineExcludesNoConfig) {
  PolicyOptions options;
  options.configs = {ConfigOf("FIB1"), ConfigOf("SDB1-50")};
  const std::unique_ptr<Policy> policy = MakePolicy("online", nullptr, options).value();
  TimePoint now{};
  // A window in which so many of 500 requests were answered.
  const auto serve = [&](int answered) {
    LatencyWindow window{.length = std::chrono::milliseconds(250), .arrivals = 500};
    for (int i = 0; i < answered; ++i) window.latencies.Add(std::chrono::milliseconds(1));
    Signals s;
    s.now = now += window.length;
    s.rates.slow = 2000;
    s.current = ConfigOf("FIB1");
    s.window = &window;
    return policy->Decide(s);
  };
  serve(500);
  EXPECT_EQ(serve(300).config, ConfigOf("FIB1"));
  EXPECT_EQ(serve(700).config, ConfigOf("FIB1")) << "it has caught up";
  EXPECT_EQ(serve(300).config, ConfigOf("FIB1"));
  const Choice choice = serve(300);
  EXPECT_EQ(choice.config, ConfigOf("SDB1-50"));
  EXPECT_EQ(choice.reason, "does not keep up");
}

TEST(Online, BeginsWithWhatAutoRunsAtAnyLoad) {
  for (double load : {1.0, 100.0, 5000.0, 50000.0}) {
    World world(Make("online", 71), 71);
    EXPECT_EQ(world.AskAt(load).config, ConfigOf("FIB1")) << load;
    PolicyOptions options = Options(71);
    options.configs.insert(options.configs.begin(), Config::Auto());
    World with_stand_ins(MakePolicy("online", nullptr, options).value(), 71);
    EXPECT_EQ(with_stand_ins.AskAt(load).config, Config::Auto()) << load;
    options.configs = {ConfigOf("SIP1"), ConfigOf("SDB1-50"), ConfigOf("SIB1")};
    World without_fibers(MakePolicy("online", nullptr, options).value(), 71);
    EXPECT_EQ(without_fibers.AskAt(load).config, ConfigOf(load < 500 ? "SIB1" : "SDB1-50")) << load;
  }
}

TEST(Online, APollerRunsOnlyWhereItGainsMoreThanTheWeight) {
  // The share of the second half hour that the poller runs in.
  const auto share = [](double poller_us, double weight, double cores = 0) {
    const std::vector<Queue> queues = {{"FIB1", 450, 9500}, {"FIP1", poller_us, 9500}};
    PolicyOptions options;
    options.seed = 81;
    options.cpu_weight = weight;
    for (const Queue& queue : queues) options.configs.push_back(ConfigOf(queue.config));
    World world(MakePolicy("online", nullptr, options).value(), 81, queues.front().config);
    world.SetCores(cores);
    const auto load = [](double) { return 700.0; };
    world.Run(queues, 1800, load);
    world.chosen().clear();
    const World::Sums sums = world.Run(queues, 1800, load);
    return static_cast<double>(world.chosen()["FIP1"]) / sums.windows;
  };
  EXPECT_LT(share(430, 0.1), 0.05) << "5 % faster";
  EXPECT_GT(share(300, 0.1), 0.9) << "a third faster";
  EXPECT_GT(share(360, 0), 0.9) << "a fifth faster, and latency alone counts";
  EXPECT_LT(share(300, 1), 0.05) << "half the p99 would have to go";
  EXPECT_LT(share(300, 0.1, 0.1), 0.05) << "a third faster for ten times the CPU";
  EXPECT_GT(share(150, 0.1, 0.1), 0.9) << "a third of the p99 for ten times the CPU";
  EXPECT_GT(share(300, 0.1, 0.6), 0.9) << "a third faster for little more CPU";
}

TEST(Online, AFlashCrowdLeadsToAConfigThatHoldsItAtOnce) {
  World world(Make("online", 51), 51);
  world.Run(kBefore, 600, [](double) { return 100.0; });
  const World::Sums crowd = world.Run(kBefore, 2, [](double) { return 8000.0; });
  EXPECT_LE(crowd.saturated, 1) << "the window in which it begins";
  world.Run(kBefore, 5, [](double) { return 100.0; });
  const World::Sums after = world.Run(kBefore, 60, [](double) { return 100.0; });
  EXPECT_LT(after.Regret(), 1.3);
}

}  // namespace
}  // namespace curtail
