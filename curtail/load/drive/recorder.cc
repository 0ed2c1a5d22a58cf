// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/recorder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/load/report/internal/error_texts.h"

namespace curtail {
namespace {

constexpr char kOtherMethods[] = "(others)";
constexpr char kNotSent[] = "NOT_SENT";
constexpr size_t kMaxErrorLength = 200;

std::string NameOfCode(int raw_code) {
  constexpr int kFirstHttp = 100;
  if (raw_code >= kFirstHttp) return absl::StrCat("HTTP ", raw_code);
  const std::string name = absl::StatusCodeToString(static_cast<absl::StatusCode>(raw_code));
  return name.empty() ? "UNKNOWN" : name;
}

double PerSecond(uint64_t count, Nanos time) {
  return time <= Nanos::zero() ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(time.count());
}

}  // namespace

std::string CodeName(const absl::Status& status) { return NameOfCode(status.raw_code()); }

Recorder::Recorder(LoadPlan plan, std::string_view score_name) {
  result_.plan = std::move(plan);
  result_.score.name = score_name;
  result_.reply_checks.checks.resize(result_.plan.checks.size());
  for (const std::string& step : result_.plan.steps) result_.steps.push_back({.name = step});
  for (const std::string& method : result_.plan.methods) result_.methods.push_back({.name = method});
}

void Recorder::Sent(Nanos intended, Nanos actual) {
  ++current_.sent;
  if (!Measured(intended)) return;
  ++result_.scheduled;
  ++result_.sent;
  last_sent_ = std::max(last_sent_, actual);
  if (!result_.plan.closed()) result_.send_lag.Record(actual - intended);
}

void Recorder::Done(Nanos intended, Nanos actual, Nanos done, const absl::Status& status, double score) {
  const Nanos latency = done - intended;
  const bool ok = status.ok();
  const Nanos at_least = result_.plan.failure_latency();
  const Nanos counted = ok ? latency : std::max(latency, at_least);
  ++(ok ? current_.ok : current_.failed);
  current_latency_.Record(counted);
  if (!Measured(intended)) return;
  result_.all.Record(counted);
  if (!result_.plan.closed())
    result_.since_sent.Record(ok ? done - actual : std::max(done - actual, at_least));
  if (!ok) return CountFailure(latency, status);
  ++result_.ok;
  result_.success.Record(latency);
  if (!std::isnan(score)) {
    ++result_.score.count;
    result_.score.sum += score;
    result_.score.min = std::min(result_.score.min, score);
  }
}

void Recorder::CountFailure(Nanos latency, const absl::Status& status) {
  CodeCount& code = codes_[status.raw_code()];
  ++result_.failed;
  ++code.count;
  result_.failure.Record(latency);
  const std::string name = CodeName(status);
  std::string text =
      absl::StrCat(name, status.message().empty() ? "" : ": ", status.message().substr(0, kMaxErrorLength));
  if (!result_.errors.contains(text)) {
    if (code.texts < internal::kMaxTextsOfCode) {
      ++code.texts;
    } else {
      text = internal::OtherTexts(name);
    }
  }
  ++result_.errors[text];
}

void Recorder::StepDone(Nanos intended, size_t step, Nanos latency, bool ok) {
  PartDone(intended, result_.steps[step], latency, ok);
}

void Recorder::MethodDone(Nanos intended, size_t method, Nanos latency, bool ok) {
  std::vector<PartResult>& methods = result_.methods;
  if (methods.empty()) return;
  if (method >= result_.plan.methods.size() && methods.size() == result_.plan.methods.size())
    methods.push_back({.name = kOtherMethods});
  PartDone(intended, methods[std::min(method, methods.size() - 1)], latency, ok);
}

void Recorder::PartDone(Nanos intended, PartResult& part, Nanos latency, bool ok) {
  if (!Measured(intended)) return;
  ++(ok ? part.ok : part.failed);
  part.latency.Record(ok ? latency : std::max(latency, result_.plan.timeout));
}

void Recorder::Checked(Nanos intended, const std::vector<std::pair<size_t, std::string>>& failed) {
  if (!Measured(intended)) return;
  ReplyCheckSummary& all = result_.reply_checks;
  ++all.replies;
  if (!failed.empty()) ++all.failed;
  for (const auto& [number, found] : failed) {
    CheckResult& check = all.checks[number];
    if (check.failed++ == 0) check.example = found.substr(0, kMaxErrorLength);
  }
}

void Recorder::DoneWithPauses(Nanos intended, Nanos latency) {
  if (Measured(intended)) result_.with_pauses.Record(latency);
}

void Recorder::Cut(Nanos intended) {
  if (!Measured(intended)) return;
  --result_.scheduled;
  --result_.sent;
}

void Recorder::Retried(Nanos intended, int retries) {
  if (!Measured(intended)) return;
  ++result_.retried;
  result_.retries += static_cast<uint64_t>(retries);
}

void Recorder::Dropped(Nanos intended) {
  const Nanos counted = result_.plan.failure_latency();
  ++current_.failed;
  current_latency_.Record(counted);
  if (!Measured(intended)) return;
  ++result_.scheduled;
  ++result_.dropped;
  ++result_.failed;
  result_.all.Record(counted);
  if (!result_.plan.closed()) result_.since_sent.Record(counted);
  result_.failure.Record(counted);
}

void Recorder::Unfinished(Nanos intended, Nanos actual, Nanos now) {
  if (!Measured(intended)) return;
  ++result_.unfinished;
  Done(intended, actual, now, absl::InternalError("the call never ended"),
       std::numeric_limits<double>::quiet_NaN());
}

const LoadInterval& Recorder::Tick(Nanos now, uint64_t due, uint64_t in_flight) {
  std::vector<LoadInterval>& series = result_.series;
  if (series.size() >= LoadResult::kMaxIntervals) MergeIntervals();
  current_.end = now;
  current_.length = now - (series.empty() ? Nanos::zero() : series.back().end);
  current_.due = due - due_before_;
  current_.p50 = current_latency_.Percentile(50);
  current_.p99 = current_latency_.Percentile(99);
  current_.in_flight = in_flight;
  series.push_back(current_);
  due_before_ = due;
  current_ = {};
  current_latency_.Clear();
  return series.back();
}

void Recorder::LastTick(Nanos now, uint64_t due) {
  Tick(now, due, 0);
  std::vector<LoadInterval>& series = result_.series;
  if (series.size() < 2) return;
  const LoadInterval last = series.back();
  const bool only_replies = last.due == 0 && last.sent == 0;
  if (!only_replies && last.length >= interval_ / 2) return;
  series.pop_back();
  LoadInterval& before = series.back();
  before.due += last.due;
  before.sent += last.sent;
  before.ok += last.ok;
  before.failed += last.failed;
  before.p99 = std::max(before.p99, last.p99);
  before.in_flight = last.in_flight;
  // Waiting for the last replies is no time of the run.
  if (only_replies) return;
  before.end = last.end;
  before.length += last.length;
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
  if (r.ok > 0) r.codes[NameOfCode(0)] = r.ok;
  for (const auto& [code, failures] : codes_) r.codes[NameOfCode(code)] += failures.count;
  // No server said so, hence no code of gRPC's.
  if (r.dropped > 0) r.codes[kNotSent] = r.dropped;
  Judge(r);
  return std::move(r);
}

}  // namespace curtail
