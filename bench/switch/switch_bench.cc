// SPDX-License-Identifier: Apache-2.0
//
// switch_bench: does exchanging the threading model of a serving mid-tier harm its requests?
//
// One process: four leaves, a mid-tier that fans out to them, and an open-loop load generator at half of what the
// slowest config sustains. Slices with a fixed config and slices with a random switch every few milliseconds take turns,
// so that what disturbs the machine disturbs both. Printed: failed requests (there must be none: exit code 99), p50 and
// p99 of both kinds of slices, and how long SwitchTo() takes; it returns once every later step follows the new config.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <thread>

#include "curtail/base/histogram.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/exec/parker.h"
#include "curtail/load/runner.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/server.h"
#include "google/protobuf/wrappers.pb.h"
#include "nlohmann/json.hpp"

namespace {

using namespace curtail;
using google::protobuf::BytesValue;

constexpr int kLeaves = 4;
constexpr const char* kConfigs[] = {"SIB1", "SIP1", "SDB1-4", "SDB1-16", "SDP1-4", "SIB2"};
constexpr Method<BytesValue, BytesValue> kNull{"/bench.Leaf/Null"};
constexpr int kThresholdFailed = 99;
constexpr int kBadConfiguration = 104;

struct Flags {
  double slice_s = 1;
  int rounds = 10;
  double period_ms = 5;
  uint64_t seed = 1;
  std::string json;
};

class Leaf final : public Service {
 public:
  std::string_view FullName() const override { return "bench.Leaf"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Null", .handler = [](Context&, std::string_view request, std::string* reply) {
               reply->assign(request);
               return absl::OkStatus();
             }}};
  }
};

class MidTier final : public Service {
 public:
  explicit MidTier(std::vector<Channel*> leaves) : leaves_(std::move(leaves)) {}
  std::string_view FullName() const override { return "bench.Mid"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Query",
             .handler = internal::UnaryHandler<BytesValue, BytesValue>(
                 [this](Context& ctx, const BytesValue& in, BytesValue* out) -> absl::Status {
                   const auto replies =
                       ctx.FanOut(std::span<Channel* const>(leaves_), kNull, std::vector(leaves_.size(), in));
                   for (const auto& reply : replies) {
                     if (!reply.ok()) return reply.status();
                   }
                   *out = in;
                   return absl::OkStatus();
                 })}};
  }

 private:
  const std::vector<Channel*> leaves_;
};

[[noreturn]] void Die(std::string_view what) {
  std::cerr << "switch_bench: " << what << "\n";
  std::exit(1);
}

std::unique_ptr<Server> Serve(const char* config, int max_threads, std::unique_ptr<Service> service) {
  ServerOptions options;
  options.config = *Config::Parse(config);
  options.max_threads = max_threads;
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::move(service));
  auto server = Server::Start(std::move(options), std::move(services));
  if (!server.ok()) Die(Message(server.status()));
  return *std::move(server);
}

// The system under test, and the load on it.
class Bench {
 public:
  explicit Bench(const Flags& flags) : flags_(flags), rng_(flags.seed) {
    std::vector<Channel*> channels;
    for (int i = 0; i < kLeaves; ++i) {
      leaves_.push_back(Serve("SIB1", 1, std::make_unique<Leaf>()));
      channels_.push_back(std::make_unique<Channel>(&client_, leaves_.back()->addresses()[0]));
      channels.push_back(channels_.back().get());
    }
    mid_ = Serve("SIB1", 32, std::make_unique<MidTier>(std::move(channels)));
    run_.target = mid_->addresses()[0];
    run_.warmup = std::chrono::milliseconds(100);
    run_.realtime = false;
  }

  // What the slowest config sustains, in answers a second.
  double Saturation() {
    double least = INFINITY;
    for (const char* config : kConfigs) {
      Put(config);
      const auto result = RunClosedLoop(run_, workload_, 16, std::chrono::milliseconds(300));
      if (!result.ok()) Die(Message(result.status()));
      least = std::min(least, result->good_per_s);
    }
    return least;
  }

  void Steady(double rate, const char* config) {
    Put(config);
    Merge(Slice(rate), &steady);
  }

  // A slice during which another thread switches at random.
  void Switching(double rate) {
    std::atomic<bool> stop{false};
    std::thread switcher([&] {
      Parker pause;  // nobody notifies it: a clock
      while (!stop) {
        const char* config = kConfigs[rng_.Below(std::size(kConfigs))];
        const TimePoint begin = Now();
        Put(config);
        switch_time.Record(Now() - begin);
        pause.Wait(pause.Ticket(), Deadline::In(Nanos(static_cast<int64_t>(flags_.period_ms * 1e6))));
      }
    });
    const LoadResult result = Slice(rate);
    stop = true;
    switcher.join();
    Merge(result, &switching);
  }

  Histogram steady, switching, switch_time;
  uint64_t requests = 0, failed = 0;

 private:
  void Put(const char* config) {
    if (absl::Status status = mid_->SwitchTo(*Config::Parse(config)); !status.ok()) Die(Message(status));
  }
  LoadResult Slice(double rate) {
    const auto length =
        std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(flags_.slice_s)) + run_.warmup;
    auto schedule = Schedule::Make(*PoissonGaps(rate), length, flags_.seed + slices_++);
    if (!schedule.ok()) Die(Message(schedule.status()));
    auto result = RunOpenLoop(run_, workload_, *schedule);
    if (!result.ok()) Die(Message(result.status()));
    return *std::move(result);
  }
  void Merge(const LoadResult& result, Histogram* into) {
    into->Merge(result.all);
    requests += result.ok + result.failed;
    failed += result.failed;
  }

  const Flags flags_;
  Rng rng_;
  uint64_t slices_ = 0;
  Client client_;
  std::vector<std::unique_ptr<Server>> leaves_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<Server> mid_;
  RunOptions run_;
  FixedWorkload workload_{"/bench.Mid/Query", std::string("\x0a\x40") + std::string(64, 'x')};
};

double Us(Nanos time) { return static_cast<double>(time.count()) / 1e3; }

void Report(const Flags& flags, const Bench& bench, double rate) {
  const double steady = Us(bench.steady.Percentile(99)), moving = Us(bench.switching.Percentile(99));
  std::printf("%-22s %10s %10s\n", "", "p50, us", "p99, us");
  std::printf("%-22s %10.0f %10.0f\n", "one config", Us(bench.steady.Percentile(50)), steady);
  std::printf("%-22s %10.0f %10.0f   %.2f x\n", "switching", Us(bench.switching.Percentile(50)), moving,
              moving / steady);
  std::printf("%-22s %10.1f %10.1f   %llu switches\n", "SwitchTo()", Us(bench.switch_time.Percentile(50)),
              Us(bench.switch_time.Percentile(99)),
              static_cast<unsigned long long>(bench.switch_time.count()));
  std::printf("%llu requests, %llu failed\n", static_cast<unsigned long long>(bench.requests),
              static_cast<unsigned long long>(bench.failed));
  if (flags.json.empty()) return;
  const nlohmann::json result = {{"schema_version", 1},
                                 {"rate_per_s", rate},
                                 {"period_ms", flags.period_ms},
                                 {"seed", flags.seed},
                                 {"steady_p50_us", Us(bench.steady.Percentile(50))},
                                 {"steady_p99_us", steady},
                                 {"switching_p50_us", Us(bench.switching.Percentile(50))},
                                 {"switching_p99_us", moving},
                                 {"switch_p50_us", Us(bench.switch_time.Percentile(50))},
                                 {"switch_p99_us", Us(bench.switch_time.Percentile(99))},
                                 {"switches", bench.switch_time.count()},
                                 {"requests", bench.requests},
                                 {"failed", bench.failed}};
  std::ofstream file(flags.json);
  file << result.dump(2) << "\n";
  if (!file.flush()) Die(Join("cannot write ", flags.json));
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  bool quick = false;
  CLI::App app("Does exchanging the threading model of a serving mid-tier harm its requests?",
               "switch_bench");
  app.footer(
      "Exit codes: 0 ok, 99 a request failed, 104 bad flags.\nExample: switch_bench --rounds 30 --json "
      "switch.json");
  app.add_option("--seconds", flags.slice_s, "A slice; a round has a steady one and one that switches")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--period-ms", flags.period_ms, "Between switches")
      ->check(CLI::Range(0.1, 1e4))
      ->capture_default_str();
  app.add_option("--seed", flags.seed)->capture_default_str();
  app.add_option("--json", flags.json, "Where to write the result");
  app.add_flag("--quick", quick, "2 rounds of 0.3 s: that it works, not how fast");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadConfiguration;
  }
  if (quick) flags.rounds = 2, flags.slice_s = 0.3;
  Bench bench(flags);
  const double rate = bench.Saturation() / 2;
  std::printf("%d rounds of 2 x %g s at %.0f requests a second, a switch every %g ms, seed %llu\n",
              flags.rounds, flags.slice_s, rate, flags.period_ms,
              static_cast<unsigned long long>(flags.seed));
  std::fflush(stdout);
  for (int i = 0; i < flags.rounds; ++i) {
    bench.Steady(rate, kConfigs[static_cast<size_t>(i) % std::size(kConfigs)]);
    bench.Switching(rate);
  }
  Report(flags, bench, rate);
  return bench.failed == 0 ? 0 : kThresholdFailed;
}
