// SPDX-License-Identifier: Apache-2.0
//
// threshold.h - conditions a load result must meet: "p99<5ms,errors<0.1%".
//
// Plain values; thread-compatible.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/report/result.h"

namespace curtail {

// A Threshold is one comparison of a number of the result with a limit. Metrics:
//   pN, mean, max  latency of every request in ns; N is any percentile, as in p99.9. Limit: "5ms"
//   errors         share of failed requests. Limit: a share ("0.1%" or "0.001")
//   rate, good     requests sent and answered OK, a second. Limit: a number
//   score          mean score of the replies. Limit: a number or a share
//   checks         share of checked replies that failed a check. Limit: a share
// The first two of a journey's step, or of one of several methods, are written behind its name:
// "pay.p99<5ms".
struct Threshold {
  std::string text;  // as given, without spaces
  std::string part;  // a step or a method; empty: every request
  std::string metric;
  std::string op;  // < <= > >=
  double limit = 0;
};

// Parses comma-separated thresholds. Errors: INVALID_ARGUMENT with the wrong part and the right
// form.
absl::StatusOr<std::vector<Threshold>> ParseThresholds(std::string_view text);

struct ThresholdOutcome {
  Threshold threshold;
  double actual = 0;
  bool met = false;
  // It is not met, but would be by LoadResult::since_sent: the generator's lateness decides. Of a
  // void run it is a percentile, mean or maximum that its send lag, taken off the latency of OK
  // replies for the send and for the reply, might bring back; or anything else.
  bool undecided = false;
};
// "met", "failed" or "undecided".
std::string_view Verdict(const ThresholdOutcome& outcome);
// "4.12 ms".
std::string ActualText(const ThresholdOutcome& outcome);

// A metric that was not measured (no request in the window, no score) does not meet any threshold.
ThresholdOutcome Evaluate(const Threshold& threshold, const LoadResult& result);

// "p99<5ms  (4.12 ms)".
std::string Describe(const ThresholdOutcome& outcome);

// The outcome of each of report.thresholds in each run. REQUIRES: ParseThresholds() takes them.
std::vector<std::vector<ThresholdOutcome>> EvaluateAll(const LoadReport& report);

}  // namespace curtail
