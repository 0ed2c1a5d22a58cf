// SPDX-License-Identifier: Apache-2.0
//
// overload.h - the part of the study that offers more and more load to one service, with each guard alone and together.
//
// A load is a run of its own; the phases of the part are the loads.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/fences/drive.h"
#include "bench/fences/results.h"
#include "bench/fences/serve.h"

namespace curtail::fences {

inline constexpr std::string_view kOverloadVariants =
    "SDB1-16,SDB1-16+deadline,SDB1-16+queue64,SDB1-16+codel,SDB1-16+lifo,SDB1-16+lifo+deadline,"
    "SDB1-16+priorities,SDB1-16+credits,SDB1-16+credits+deadline,"
    "SDB1-16+queue64+codel+lifo+priorities+credits+deadline";
// Offered over what the leaf answers at most.
std::vector<double> OverloadShares();
// An answer within it is a good one. Guard "deadline" gives each request so long; else it has kTimeout.
inline constexpr Nanos kSlo = std::chrono::milliseconds(250);
// The most that the leaf answers: 16 threads with 20 ms each.
inline constexpr int kOverloadServiceMs = 20;
inline constexpr double kCapacityPerS = 16 * 1000.0 / kOverloadServiceMs;

// An OverloadStudy drives the load generator. Thread-compatible.
class OverloadStudy {
 public:
  explicit OverloadStudy(const Study& study) : study_(study) {}

  // Starts the processes, and measures all variants in turns, all loads and rounds. `part` has its rows already.
  // Errors: those of Tier and Drive(); CANCELLED when stopped. A round is in `part` once all its loads are measured.
  absl::Status Measure(Part* part);

 private:
  absl::Status Start(const Part& part);
  absl::StatusOr<Cell> MeasureLoad(size_t variant, const Variant& guards, double rate_per_s, uint64_t seed);

  const Study& study_;
  std::unique_ptr<Tier> leaf_;
  std::vector<std::unique_ptr<Tier>> shared_;  // of the variants
};

}  // namespace curtail::fences
