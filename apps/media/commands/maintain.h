// SPDX-License-Identifier: Apache-2.0
//
// maintain.h - asks a service `maintenance` for a job, and waits until it is done.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "apps/kit/load/target.h"

namespace curtail::media {

struct MaintainOptions {
  apps::Target target;
  std::string job;  // "sums", "index" or "books"
  double timeout_s = 600;
};

// Prints how much has changed. INVALID_ARGUMENT: there is no such job, or the target's flags are wrong. Other errors: those of the job.
absl::Status Maintain(const MaintainOptions& options);

}  // namespace curtail::media
