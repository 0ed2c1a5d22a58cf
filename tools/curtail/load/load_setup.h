// SPDX-License-Identifier: Apache-2.0
//
// load_setup.h - what the flags of `curtail load` come to: targets, requests and arrivals, checked.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/drive/rate_curve.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/drive/schedule.h"
#include "curtail/load/message/catalog.h"
#include "curtail/load/message/workload.h"
#include "curtail/load/report/report.h"
#include "curtail/load/report/threshold.h"
#include "tools/curtail/load/load_flags.h"

namespace curtail::tool {

// The addresses, and what the channels to them are like.
struct LoadTargets {
  std::vector<std::string> addresses;
  std::string application;  // "hdsearch" if the flags name one
  std::map<std::string, std::string>
      settings;            // of that application's topology, where it is known to be up there
  std::string run_folder;  // of the application that is called, if it is up here; else empty
  ChannelOptions channel;
  std::optional<HttpOptions> http;  // where the addresses are URLs
};
// Errors: INVALID_ARGUMENT naming the flag.
absl::StatusOr<LoadTargets> MakeTargets(const LoadFlags& flags);

// The description of the server's methods: its own reflection or the files of --proto. Errors: those of Catalog.
absl::StatusOr<Catalog> MakeCatalog(const LoadFlags& flags, const LoadTargets& targets);

// Checks that the flags name the requests: of an `application` that curtail has, or of another server. Errors:
// INVALID_ARGUMENT.
absl::Status CheckNamed(const LoadFlags& flags, bool application);

// Makes the requests of a run, which follow from its seed.
using WorkloadMaker = std::function<absl::StatusOr<std::shared_ptr<const Workload>>(uint64_t seed)>;
// The requests. Errors: INVALID_ARGUMENT naming the flag; those of Catalog, of JSON, and of reading files. The maker
// may find others of them.
absl::StatusOr<WorkloadMaker> MakeWorkloads(const LoadFlags& flags, const LoadTargets& targets, bool quiet);

// The rate over time, warm-up included. Errors: INVALID_ARGUMENT naming the flag; NOT_FOUND.
absl::StatusOr<RateCurve> MakeCurve(const LoadFlags& flags, Nanos warmup, uint64_t seed);

// Puts what --stream asks for into `options`, if it is given: what a request is depends on the method. Errors:
// INVALID_ARGUMENT naming the flag, or that the method does not stream; those of Catalog.
absl::Status SetStream(const LoadFlags& flags, const LoadTargets& targets, RunOptions* options);

// Puts what --retries asks for into `options`, for methods that are declared idempotent. Errors: INVALID_ARGUMENT naming
// the flag; those of Catalog.
absl::Status SetRetries(const LoadFlags& flags, const LoadTargets& targets, RunOptions* options);

// Puts the metadata of the flags into `options`, drawn from `seed` where it has placeholders. Errors:
// INVALID_ARGUMENT naming the flag.
absl::Status SetMetadata(const LoadFlags& flags, uint64_t seed, RunOptions* options);

// Which of several generators this one is: number 1 to `of`.
struct LoadShare {
  int number = 1;
  int of = 1;
};

// Everything else that a run needs.
struct LoadSetup {
  RunOptions options;
  // Of the first run; absent in a closed loop.
  std::optional<RateCurve> curve;
  Gaps gaps = Gaps::kPoisson;
  Nanos duration{0};  // of the measured window
  LoadShare share;
  std::optional<TimePoint> start_at;  // of the first run
  Nanos between_starts{0};            // of runs, where they have times to start at
  std::vector<Threshold> thresholds;  // --fail-if
  std::vector<Threshold> find_max;
};
// Errors: INVALID_ARGUMENT naming the flag; NOT_FOUND and others for files.
absl::StatusOr<LoadSetup> MakeSetup(const LoadFlags& flags, const LoadTargets& targets);

// `status` of a first call, or in place of UNIMPLEMENTED the names of the services, if the server describes none of this
// name.
absl::Status ExplainUnknown(const LoadFlags& flags, const LoadTargets& targets, const absl::Status& status);

// The error of an --admin at which nothing answers; OK if it is empty.
absl::Status CheckAdmin(const std::string& admin);

}  // namespace curtail::tool
