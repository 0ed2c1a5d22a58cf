// SPDX-License-Identifier: Apache-2.0
//
// The cost of adaptation to an arrival, on the request path.
//
// For instructions instead of times, run a case once and three times under callgrind, and divide the difference
// by 2 * kArrivals:
//   valgrind --tool=callgrind controller_bench --benchmark_filter=Mutune/every:8/ --benchmark_repetitions=3

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "curtail/adapt/controller.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/adapt/profile_testing.h"
#include "curtail/base/rng.h"

namespace curtail {
namespace {

class NoServer final : public Actuator {
 public:
  absl::Status SwitchTo(const Config& config) override {
    config_ = config;
    return absl::OkStatus();
  }
  Config current() const override { return config_; }

 private:
  Config config_{.network = 1};
};

constexpr int kArrivals = 1 << 18;

// Gaps of Poisson arrivals at 3000/s, drawn beforehand.
const std::vector<Nanos>& Gaps() {
  static const std::vector<Nanos> kGaps = [] {
    Rng rng(1);
    std::vector<Nanos> gaps(4096);
    for (Nanos& gap : gaps) gap = Nanos(static_cast<int64_t>(rng.Exponential(1e9 / 3000)));
    return gaps;
  }();
  return kGaps;
}

void Arrivals(benchmark::State& state, const char* spec) {
  NoServer server;
  const Profile profile = SteppedProfile();
  Controller controller(MakePolicy(spec, &profile, {}).value(), &server,
                        {.evaluate_every = static_cast<int>(state.range(0))});
  const std::vector<Nanos>& gaps = Gaps();
  TimePoint now(std::chrono::seconds(1));
  size_t i = 0;
  for (auto _ : state) {
    now += gaps[i++ % gaps.size()];
    const uint32_t epoch = controller.OnArrival(now);
    controller.OnLatency(std::chrono::microseconds(700), epoch);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK_CAPTURE(Arrivals, Static, "static:SIP1")
    ->ArgName("every")
    ->Arg(8)
    ->Arg(1 << 20)
    ->Iterations(kArrivals);
BENCHMARK_CAPTURE(Arrivals, Mutune, "mutune")
    ->ArgName("every")
    ->Arg(1)
    ->Arg(8)
    ->Arg(16)
    ->Iterations(kArrivals);
BENCHMARK_CAPTURE(Arrivals, Paper, "mutune:paper")->ArgName("every")->Arg(1)->Arg(8)->Iterations(kArrivals);
BENCHMARK_CAPTURE(Arrivals, Online, "online")->ArgName("every")->Arg(8)->Iterations(kArrivals);

void Ring(benchmark::State& state) {
  static ArrivalRing ring;
  TimePoint now(std::chrono::seconds(1));
  for (auto _ : state) ring.Add(now += Nanos(1000));
}
BENCHMARK(Ring)->Threads(1)->Threads(2);

}  // namespace
}  // namespace curtail

BENCHMARK_MAIN();
