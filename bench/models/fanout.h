// SPDX-License-Identifier: Apache-2.0
//
// fanout.h - the null fan-out as an application: a mid-tier that calls its leaves and does nothing else.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tools/curtail/deploy/application.h"

namespace curtail::models {

// Its mid-tiers take a config, and no policy. Errors: NOT_FOUND (the program).
absl::StatusOr<std::unique_ptr<tool::Application>> MakeFanout(const tool::ApplicationOptions& options);

}  // namespace curtail::models
