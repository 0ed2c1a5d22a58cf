// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/recorder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace curtail {
namespace {

// Servers that put ids into their error messages must not fill our memory.
constexpr size_t kMaxErrorTexts = 50;
constexpr size_t kMaxErrorLength = 200;

double PerSecond(uint64_t count, Nanos time) {
  return time <= Nanos::zero() ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(time.count());
}

}  // namespace

Recorder::Recorder(LoadPlan plan, std::string_view score_name) {
  result_.plan = std::move(plan);
  result_.score.name = score_name;
}

void Recorder::Sent(Nanos intended, Nanos actual) {
  ++current_.sent;
  if (!Measured(intended)) return;
  ++result_.scheduled;
  ++result_.sent;
  last_sent_ = std::max(last_sent_, actual);
  if (!result_.plan.closed()) result_.send_lag.Record(actual - intended);
}

void Recorder::Done(Nanos intended, Nanos done, const absl::Status& status, double score) {
  const Nanos latency = done - intended;
  const bool ok = status.ok();
  const Nanos counted = ok ? latency : std::max(latency, result_.plan.timeout);
  ++(ok ? current_.ok : current_.failed);
  current_latency_.Record(counted);
  if (!Measured(intended)) return;
  result_.all.Record(counted);
  if (!ok) return CountFailure(latency, status);
  ++result_.ok;
  ++codes_[0];
  result_.success.Record(latency);
  if (!std::isnan(score)) {
    ++result_.score.count;
    result_.score.sum += score;
    result_.score.min = std::min(result_.score.min, score);
  }
}

void Recorder::CountFailure(Nanos latency, const absl::Status& status) {
  ++result_.failed;
  ++codes_[std::min<size_t>(static_cast<size_t>(status.raw_code()), codes_.size() - 1)];
  result_.failure.Record(latency);
  std::string text = absl::StrCat(absl::StatusCodeToString(status.code()), ": ",
                                  status.message().substr(0, kMaxErrorLength));
  if (result_.errors.size() >= kMaxErrorTexts && !result_.errors.contains(text)) text = "(other texts)";
  ++result_.errors[text];
}

void Recorder::Dropped(Nanos intended) {
  ++current_.failed;
  current_latency_.Record(result_.plan.timeout);
  if (!Measured(intended)) return;
  ++result_.scheduled;
  ++result_.dropped;
  result_.all.Record(result_.plan.timeout);
  CountFailure(result_.plan.timeout, absl::ResourceExhaustedError("not sent: too many calls in flight"));
}

void Recorder::Unfinished(Nanos intended, Nanos now) {
  if (!Measured(intended)) return;
  ++result_.unfinished;
  Done(intended, now, absl::InternalError("the call never ended"), std::numeric_limits<double>::quiet_NaN());
}

const LoadInterval& Recorder::Tick(Nanos now, uint64_t due, uint64_t in_flight) {
  if (result_.series.size() >= LoadResult::kMaxIntervals) MergeIntervals();
  const Nanos last = result_.series.empty() ? Nanos::zero() : result_.series.back().end;
  current_.end = now;
  current_.length = now - last;
  current_.due = due - due_before_;
  current_.p50 = current_latency_.Percentile(50);
  current_.p99 = current_latency_.Percentile(99);
  current_.in_flight = in_flight;
  result_.series.push_back(current_);
  due_before_ = due;
  current_ = {};
  current_latency_.Clear();
  return result_.series.back();
}

void Recorder::MergeIntervals() {
  std::vector<LoadInterval>& series = result_.series;
  for (size_t i = 0; i + 1 < series.size(); i += 2) {
    const LoadInterval& a = series[i];
    LoadInterval merged = series[i + 1];
    merged.length += a.length;
    merged.due += a.due;
    merged.sent += a.sent;
    merged.ok += a.ok;
    merged.failed += a.failed;
    merged.p50 = std::max(merged.p50, a.p50);
    merged.p99 = std::max(merged.p99, a.p99);
    series[i / 2] = merged;
  }
  series.resize(series.size() / 2);
  interval_ *= 2;
}

LoadResult Recorder::Finish(Nanos end, bool interrupted, Nanos cpu, Nanos spin, const LoadChecks& checks) {
  LoadResult& r = result_;
  r.measured = std::clamp(end - r.plan.warmup, Nanos::zero(), r.plan.duration);
  r.interrupted = interrupted;
  r.cpu = cpu;
  r.spin = spin;
  r.checks = checks;
  r.scheduled_per_s = PerSecond(r.scheduled, r.measured);
  r.sent_per_s = PerSecond(r.sent, std::max(r.measured, last_sent_ - r.plan.warmup));
  r.good_per_s = PerSecond(r.ok, r.measured);
  for (size_t code = 0; code < codes_.size(); ++code) {
    if (codes_[code] == 0) continue;
    r.codes[absl::StatusCodeToString(static_cast<absl::StatusCode>(code))] = codes_[code];
  }
  Judge(r);
  return std::move(r);
}

}  // namespace curtail
