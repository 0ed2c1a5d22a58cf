// SPDX-License-Identifier: Apache-2.0
//
// fill.h - fills a router with the records of a workload.
#pragma once

#include <cstddef>
#include "absl/status/status.h"
#include "apps/kit/load/target.h"
#include "apps/router/workload.h"

namespace curtail::router {

struct FillOptions {
  apps::Target target;  // a mid-tier
  WorkloadOptions workload;
  int in_flight = 64;
  double timeout_s = 10;  // of one set
  bool quiet = false;
};

// Sets every record of the workload through the mid-tier, `in_flight` at once. Errors: of the target's flags; of the first
// set that failed, after those in flight have ended; or when a replica did not take a record.
[[nodiscard]] absl::Status Fill(const FillOptions& options);

}  // namespace curtail::router
