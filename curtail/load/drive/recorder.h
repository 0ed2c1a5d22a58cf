// SPDX-License-Identifier: Apache-2.0
//
// recorder.h - turns the outcome of each request into a LoadResult.
//
// Pure bookkeeping: no clock, no network; all times are offsets from the start of the run.
// Thread-compatible: the sending thread owns it. Some tens of nanoseconds a call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/load/report/result.h"

namespace curtail {

// The code of `status` as reports name it: "UNAVAILABLE"; "HTTP 404" of a server that answered so.
// The status then has that number as its raw code.
std::string CodeName(const absl::Status& status);

// A Recorder accounts for every request of one run exactly once.
class Recorder {
 public:
  // The measured window is [plan.warmup, plan.warmup + plan.duration).
  Recorder(LoadPlan plan, std::string_view score_name);

  // A request due at `intended` was sent at `actual`. In closed loop the two are the same.
  void Sent(Nanos intended, Nanos actual);
  // The request, sent at `actual`, ended at `done`. `score` is NaN when it was not judged.
  void Done(Nanos intended, Nanos actual, Nanos done, const absl::Status& status, double score);
  // A step of the journey due at `intended` has ended, `latency` after it was due.
  void StepDone(Nanos intended, size_t step, Nanos latency, bool ok);
  // A request by the method of this number in plan.methods has ended; a higher number is any other
  // method. Nothing if the plan has none.
  void MethodDone(Nanos intended, size_t method, Nanos latency, bool ok);
  // The checks of an OK reply have been made; `failed` has the numbers in plan.checks of checks
  // that it fails, and what it has instead.
  void Checked(Nanos intended, const std::vector<std::pair<size_t, std::string>>& failed);
  // The journey succeeded; `latency` has its pauses.
  void DoneWithPauses(Nanos intended, Nanos latency);
  // The run was interrupted before the request ended, which then does not count.
  void Cut(Nanos intended);
  // The same request was made again `retries` times before it ended.
  void Retried(Nanos intended, int retries);
  // A request was due but not sent, because too many are in flight.
  void Dropped(Nanos intended);
  // The run gave a request, sent at `actual`, up at `now`; it had not ended.
  void Unfinished(Nanos intended, Nanos actual, Nanos now);

  // Closes the current interval of the series at `now`, by which time `due` requests were due in
  // all. Intervals should be interval() long.
  const LoadInterval& Tick(Nanos now, uint64_t due, uint64_t in_flight);
  // The same at the end, when no request is in flight any more. A short interval, or one in which
  // no request was due, is counted into the one before.
  void LastTick(Nanos now, uint64_t due);
  // One second; it doubles each time the series is full.
  Nanos interval() const { return interval_; }

  // The judged result of a run that sent until `end`: the end of the schedule, or the interruption.
  LoadResult Finish(Nanos end, bool interrupted, Nanos cpu, Nanos spin, const LoadChecks& checks = {});

  // True if the request due at `intended` is in the measured window.
  bool Measured(Nanos intended) const {
    return intended >= result_.plan.warmup && intended < result_.plan.warmup + result_.plan.duration;
  }

 private:
  void PartDone(Nanos intended, PartResult& part, Nanos latency, bool ok);
  void CountFailure(Nanos latency, const absl::Status& status);
  // Makes room in the series: two neighbours become one.
  void MergeIntervals();

  LoadResult result_;
  // Of failures with one code. An HTTP status of a server counts as its number.
  struct CodeCount {
    uint64_t count = 0;
    int texts = 0;  // different ones kept
  };
  std::map<int, CodeCount> codes_;  // by the raw code of the status
  Nanos last_sent_{0};
  // The interval in progress.
  Nanos interval_ = std::chrono::seconds(1);
  LoadInterval current_;
  Histogram current_latency_;
  uint64_t due_before_ = 0;  // until its start
};

}  // namespace curtail
