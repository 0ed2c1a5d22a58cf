// SPDX-License-Identifier: Apache-2.0
//
// switch_bench: does exchanging the threading model of a serving mid-tier harm its requests?
//
// One process: four leaves, a mid-tier that fans out to them, and an open-loop load generator at half of what the
// slowest config of a family sustains. Slices with a fixed config and slices with a random switch every few
// milliseconds take turns, so that what disturbs the machine disturbs both. The families: synchronous and fiber
// configs, asynchronous configs, and, because the handler is a coroutine, all together. Printed for each: failed
// requests (there must be none: exit code 99), p50 and p99 of both kinds of slices, how long SwitchTo() takes, and how
// long it takes from its call until the first request has begun under the new config (which has to arrive first).
#include <CLI/CLI.hpp>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/common/program.h"
#include "bench/common/report.h"
#include "bench/common/round.h"
#include "curtail/base/clock.h"
#include "curtail/base/histogram.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/exec/parker.h"
#include "curtail/load/drive/runner.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/server.h"
#include "google/protobuf/wrappers.pb.h"

namespace {

using namespace curtail;
using google::protobuf::BytesValue;

constexpr int kLeaves = 4;
const std::vector<std::string> kSyncAndFiber = {"SIB1", "SIB2", "SIP1", "SDB1-4", "SDB1-16", "SDP1-4",
                                                "FIB1", "FIB2", "FIP1", "FDB1-1", "FDB1-2",  "FDP1-1"};
const std::vector<std::string> kAsynchronous = {"AIB1-1",   "AIB1-2",   "AIP1-1",
                                                "ADB1-1-1", "ADB1-4-4", "ADP1-2-2"};
constexpr Method<BytesValue, BytesValue> kNull{"/bench.Leaf/Null"};

struct Flags : bench::CommonFlags {
  double slice_s = 1;
  double period_ms = 5;
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
    return {internal::CoroutineMethod<BytesValue, BytesValue>(
        "Query",
        [this](Context& ctx, const BytesValue& in, BytesValue* out) { return Query(ctx, in, out); })};
  }

 private:
  Coroutine Query(Context& ctx, const BytesValue& in, BytesValue* out) {
    const auto replies =
        co_await fan_out(ctx, std::span<Channel* const>(leaves_), kNull, std::vector(leaves_.size(), in));
    for (const auto& reply : replies) {
      if (!reply.ok()) co_return reply.status();
    }
    *out = in;
    co_return absl::OkStatus();
  }

  const std::vector<Channel*> leaves_;
};

[[noreturn]] void Die(std::string_view what) {
  std::cerr << "switch_bench: " << what << "\n";
  std::exit(1);
}

std::unique_ptr<Server> Serve(const std::string& config, int max_threads, std::unique_ptr<Service> service) {
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
class SwitchBench {
 public:
  SwitchBench(const Flags& flags, const std::vector<std::string>& configs)
      : flags_(flags), configs_(configs), rng_(flags.seed) {
    std::vector<Channel*> channels;
    for (int i = 0; i < kLeaves; ++i) {
      leaves_.push_back(Serve("SIB1", 1, std::make_unique<Leaf>()));
      channels_.push_back(std::make_unique<Channel>(&client_, leaves_.back()->addresses()[0]));
      channels.push_back(channels_.back().get());
    }
    mid_ = Serve(configs_[0], 48, std::make_unique<MidTier>(std::move(channels)));
    run_.targets = {mid_->addresses()[0]};
    run_.warmup = std::chrono::milliseconds(100);
    run_.realtime = false;
  }

  // The rate that the slowest config sustains, in answers a second.
  double Saturation() {
    double least = INFINITY;
    for (const std::string& config : configs_) {
      Put(config);
      const auto result = RunClosedLoop(run_, workload_, 16, std::chrono::milliseconds(300));
      if (!result.ok()) Die(Message(result.status()));
      least = std::min(least, result->good_per_s);
    }
    return least;
  }

  void Steady(double rate, int round) {
    Put(configs_[static_cast<size_t>(round) % configs_.size()]);
    Merge(Slice(rate), &steady);
  }

  // A slice during which another thread switches at random.
  void Switching(double rate) {
    std::atomic<bool> stop{false};
    std::thread switcher([&] {
      Parker pause;  // never notified: a clock
      while (!stop) {
        const TimePoint begin = Now();
        Put(configs_[rng_.Below(configs_.size())]);
        switch_time.Record(Now() - begin);
        const uint64_t begun = mid_->Sample().pools.begun;
        const Deadline enough = Deadline::In(std::chrono::milliseconds(20));
        while (mid_->Sample().pools.begun == begun && !enough.Expired()) {
          pause.Wait(pause.Ticket(), Deadline::In(std::chrono::microseconds(20)));
        }
        first_request.Record(Now() - begin);
        pause.Wait(pause.Ticket(), Deadline::In(Nanos(static_cast<int64_t>(flags_.period_ms * 1e6))));
      }
    });
    const LoadResult result = Slice(rate);
    stop = true;
    switcher.join();
    Merge(result, &switching);
  }

  Histogram steady, switching, switch_time, first_request;
  uint64_t requests = 0, failed = 0;

 private:
  void Put(const std::string& config) {
    if (absl::Status status = mid_->SwitchTo(*Config::Parse(config)); !status.ok()) Die(Message(status));
  }
  LoadResult Slice(double rate) {
    const auto length =
        std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(flags_.slice_s)) + run_.warmup;
    auto schedule = Schedule::Poisson(rate, length, flags_.seed + slices_++);
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
  const std::vector<std::string> configs_;
  Rng rng_;
  uint64_t slices_ = 0;
  Client client_;
  std::vector<std::unique_ptr<Server>> leaves_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<Server> mid_;
  RunOptions run_;
  FixedWorkload workload_{"/bench.Mid/Query", std::string("\x0a\x40") + std::string(64, 'x')};
};

// The results of the families.
struct Tables {
  bench::Table slices{"slices", 2};
  bench::Table families{"families"};

  void Add(const std::string& family, const SwitchBench& bench, double rate) {
    const double steady_us = InMicros(bench.steady.Percentile(99));
    const auto add = [&](const char* what, const Histogram& of) {
      const double p99_us = InMicros(of.Percentile(99));
      slices.Add({{"family", "family", family},
                  {"what", "what", what},
                  {"p50_us", "p50, us", InMicros(of.Percentile(50))},
                  {"p99_us", "p99, us", p99_us},
                  {"", "x", &of == &bench.switching ? bench::Cell(p99_us / steady_us) : bench::Cell("")}});
    };
    add("one config", bench.steady);
    add("switching", bench.switching);
    add("SwitchTo()", bench.switch_time);
    add("first request", bench.first_request);
    families.Add({{"family", "family", family},
                  {"rate_per_s", "requests a second", rate},
                  {"switches", "switches", bench.switch_time.count(), bench::Median(bench::Grouped)},
                  {"requests", "requests", bench.requests, bench::Median(bench::Grouped)},
                  {"failed", "failed", bench.failed, bench::Median(bench::Grouped)}});
  }
};

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  flags.rounds = 10;
  CLI::App app("Does exchanging the threading model of a serving mid-tier harm its requests?",
               "switch_bench");
  app.footer(
      "Exit codes: 0 ok, 99 a request failed, 104 bad flags, 105 interrupted (what was measured is "
      "reported).\nExample: switch_bench --rounds 30 --json "
      "switch.json");
  app.add_option("--seconds", flags.slice_s, "A slice; a round has a steady one and one that switches")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  app.add_option("--period-ms", flags.period_ms, "Between switches")
      ->check(CLI::Range(0.1, 1e4))
      ->capture_default_str();
  bench::AddCommonFlags(app, &flags,
                        {.quick = "2 rounds of 0.3 s: that it works, not how fast",
                         .seed = "Of the arrivals and the switches"});
  if (const std::optional<int> code = bench::ParseFlags(app, argc, argv, &flags)) return *code;
  if (flags.quick) flags.rounds = 2, flags.slice_s = 0.3;
  bench::Session session(flags);
  const bench::Machine machine = bench::LookAtMachine();
  bench::Report report("switch", flags, machine);
  report.Say(absl::StrFormat("%d rounds of 2 x %g s a family, a switch every %g ms, seed %d", flags.rounds,
                             flags.slice_s, flags.period_ms, flags.seed));
  std::vector<std::string> all = kSyncAndFiber;
  all.insert(all.end(), kAsynchronous.begin(), kAsynchronous.end());
  const std::pair<const char*, std::vector<std::string>> families[] = {
      {"sync and fiber", kSyncAndFiber}, {"async", kAsynchronous}, {"all", all}};
  Tables tables;
  uint64_t failed = 0;
  for (const auto& [name, configs] : families) {
    SwitchBench subject(flags, configs);
    const double rate = subject.Saturation() / 2;
    // In a round: a slice with one config, then one that switches.
    const bench::RoundPlan plan{.rounds = flags.rounds, .subjects = 2, .stop = &session.stop()};
    const absl::Status ended = bench::RunRounds(plan, [&](const bench::Turn& turn) {
      session.Progress(absl::StrCat(bench::RoundText(plan, turn), name));
      if (turn.subject == 0) {
        subject.Steady(rate, turn.round);
      } else {
        subject.Switching(rate);
      }
      return absl::OkStatus();
    });
    tables.Add(name, subject, rate);
    failed += subject.failed;
    if (!ended.ok()) break;
  }
  report.Set("period_ms", flags.period_ms).Add(std::move(tables.slices)).Add(std::move(tables.families));
  return session.Finish("switch_bench", report, absl::OkStatus(), failed == 0 ? kOk : kThreshold);
}
