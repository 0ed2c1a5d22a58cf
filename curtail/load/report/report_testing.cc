// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/report_testing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "curtail/base/rng.h"

namespace curtail {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kSeconds = 12;
constexpr int kStall = 7;  // the second in which the server answers nothing

double Normal(Rng& rng) {  // Box and Muller
  return std::sqrt(rng.Exponential(2)) * std::cos(2 * std::numbers::pi * rng.Uniform01());
}

struct Seconds {
  std::array<LoadInterval, kSeconds + 1> intervals;
  std::array<Histogram, kSeconds + 1> latency;
};

// Books request `i`, due at `due`.
void Book(int i, Nanos due, double slowdown, Rng& rng, LoadResult& r, Seconds& s) {
  Nanos latency(std::llround(2e6 * slowdown * std::exp(0.4 * Normal(rng))));
  if (due >= seconds(kStall) && due < seconds(kStall + 1)) latency += seconds(kStall + 1) - due;
  const bool ok = i % 100 != 50;
  const auto second = static_cast<size_t>(due / seconds(1));
  const auto end = std::min<size_t>(kSeconds, static_cast<size_t>((due + latency) / seconds(1)));
  const Nanos counted = ok ? latency : std::max(latency, r.plan.timeout);
  ++s.intervals[second].due;
  ++s.intervals[second].sent;
  ++(ok ? s.intervals[end].ok : s.intervals[end].failed);
  s.latency[end].Record(counted);
  if (due < r.plan.warmup) return;
  ++r.scheduled;
  ++r.sent;
  const Nanos lag = microseconds(4) + Nanos(static_cast<int64_t>(rng.Exponential(2e3)));
  r.send_lag.Record(lag);
  r.all.Record(counted);
  r.since_sent.Record(ok ? latency - lag : counted);
  ++(ok ? r.ok : r.failed);
  (ok ? r.success : r.failure).Record(latency);
  ++r.codes[ok ? "OK" : "ABORTED"];
  if (!ok) ++r.errors["ABORTED: bad \xff text </script><b>&"];
  if (ok) r.score.sum += 0.95, ++r.score.count;
}

}  // namespace

LoadPlan SamplePlan() {
  LoadPlan plan;
  plan.target = "127.0.0.1:7000";
  plan.method = "/a.B/C";
  plan.arrivals = "poisson";
  plan.schedule = "constant:100";
  plan.rate_per_s = plan.peak_per_s = 100;
  plan.seed = 9;
  plan.warmup = seconds(2);
  plan.duration = seconds(10);
  plan.timeout = seconds(1);
  plan.spin = microseconds(120);
  return plan;
}

LoadResult SampleRun(uint64_t seed, double slowdown) {
  Rng rng(seed);
  LoadResult r;
  Seconds s;
  r.plan = SamplePlan();
  r.plan.seed = seed;
  r.score.name = "recall@10";
  r.score.min = 0.95;
  Nanos due(0);
  for (int i = 0;; ++i) {
    due += Nanos(static_cast<int64_t>(rng.Exponential(1e7)));
    if (due >= seconds(kSeconds)) break;
    Book(i, due, slowdown, rng, r, s);
  }
  uint64_t in_flight = 0;
  for (int i = 0; i < kSeconds; ++i) {
    LoadInterval& interval = s.intervals[static_cast<size_t>(i)];
    interval.end = seconds(i + 1);
    interval.length = seconds(1);
    interval.p50 = s.latency[static_cast<size_t>(i)].Percentile(50);
    interval.p99 = s.latency[static_cast<size_t>(i)].Percentile(99);
    in_flight += interval.sent - interval.ok - interval.failed;
    interval.in_flight = in_flight;
    interval.config = i < kStall + 1 ? "SIB1" : "SDB1-16";
    r.series.push_back(interval);
  }
  r.measured = r.plan.duration;
  r.scheduled_per_s = r.sent_per_s = static_cast<double>(r.sent) / 10;
  r.good_per_s = static_cast<double>(r.ok) / 10;
  r.cpu = milliseconds(30);
  r.spin = milliseconds(10);
  r.checks.neighbours = 0.25;
  r.warnings.push_back("latencies go together with their neighbours: the intervals are too narrow");
  return r;
}

LoadReport SampleReport(int runs, uint64_t seed, double slowdown) {
  LoadReport report;
  for (int i = 0; i < runs; ++i) report.runs.push_back(SampleRun(seed + static_cast<uint64_t>(i), slowdown));
  return report;
}

LoadReport SampleJourneys() {
  LoadReport report = SampleReport(1);
  LoadResult& r = report.runs.front();
  r.plan.steps = {"log-in", "pay"};
  for (const std::string& step : r.plan.steps) r.steps.push_back({step, 5, 1, r.all});
  r.with_pauses.Record(seconds(3), 5);
  return report;
}

LoadReport SampleChecked() {
  LoadReport report = SampleReport(1);
  LoadResult& r = report.runs.front();
  r.plan.checks = {".user.id == 7", ".name"};
  r.reply_checks = {.replies = 99, .failed = 3, .checks = {{}, {3, "it is absent"}}};
  report.thresholds = {"checks<=1%"};
  return report;
}

LoadReport SampleMix() {
  LoadReport report = SampleReport(1);
  LoadResult& r = report.runs.front();
  r.plan.methods = {"Balance", "Pay"};
  for (const std::string& method : r.plan.methods) r.methods.push_back({method, 5, 1, r.all});
  report.thresholds = {"p50<1s", "Pay.errors<=0.01%"};
  return report;
}

LoadReport SampleShare(int share, int shares, int runs) {
  LoadReport report = SampleReport(runs, static_cast<uint64_t>(share));
  for (int i = 0; i < runs; ++i) {
    LoadResult& run = report.runs[static_cast<size_t>(i)];
    run.plan.seed = static_cast<uint64_t>(i);
    run.plan.share = share;
    run.plan.shares = shares;
    run.started = seconds(1'769'860'800 + 20 * i) + milliseconds(share);
    Judge(run);
  }
  return report;
}

ReportOrigin SampleOrigin() {
  ReportOrigin origin;
  origin.curtail_version = "1.2.3";
  origin.machine =
      Machine{.cpus = 8, .cpu_model = "Test CPU", .kernel = "Linux 6.1", .load_average_before = 0.25};
  origin.started = "2026-01-31T12:00:00Z";
  origin.command = "curtail load 127.0.0.1:7000 --rps 100 --method a.B/C --data '{\"x\": 1}'";
  origin.request = "{\"x\": 1}";
  return origin;
}

}  // namespace curtail
