// SPDX-License-Identifier: Apache-2.0
//
// traces.h - the part of the study with three traces over the four applications behind one front service.
//
// The path Browse varies with the trace, up to more than its applications answer; the path Read is steady. On two CPUs
// and more the applications of Browse share one CPU, and all else the first one: what Browse lacks is not taken from Read.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/fences/drive.h"
#include "bench/fences/front.h"
#include "bench/fences/results.h"
#include "bench/fences/serve.h"

namespace curtail::fences {

struct Trace {
  std::string_view name;
  std::string_view shape;  // of curtail/load/drive/shape.h
};
// "large", "quick", "slow".
std::vector<Trace> Traces();

inline constexpr std::string_view kTraceVariants = "SDB1-16,ADB1-4-4,SDB1-16+on,SDB1-16+strict";

// A TraceStudy drives the load generator. Thread-compatible.
class TraceStudy {
 public:
  explicit TraceStudy(const Study& study);
  ~TraceStudy();

  // Starts everything and finds what Browse answers at most. `variants` are those of all parts. Errors: those of
  // Deployment, Tier and the load generator.
  absl::Status Start(const std::vector<Row>& variants);
  // Measures all variants in turns, all rounds. `part` has its rows already. Errors: as above; CANCELLED when stopped.
  absl::Status Measure(const Trace& trace, Part* part);

 private:
  struct Stage;  // an application: its topology and its processes

  absl::Status StartApplications();
  absl::Status MakeWorkloads();
  absl::Status StartFronts(const std::vector<Row>& variants);
  absl::Status FindPeak(const std::vector<Row>& variants);
  absl::StatusOr<std::vector<ClassPlan>> Plans(const Trace& trace) const;

  const Study& study_;
  std::vector<std::unique_ptr<Stage>> stages_;  // of kApplications
  std::vector<std::unique_ptr<Tier>> fronts_;   // of the variants
  Requests browse_, read_;
  double browse_peak_per_s_ = 0;
};

}  // namespace curtail::fences
