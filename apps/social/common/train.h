// SPDX-License-Identifier: Apache-2.0
//
// train.h - learns from the stores of a data folder, and leaves models there for the services.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "apps/kit/logistic.h"
#include "apps/social/common/learned.h"

namespace curtail::social {

inline constexpr char kFollowModelFile[] = "follow.model";

struct TrainOptions {
  std::string data = "auto";  // the folder
  FollowTraining follows;
  apps::LogisticTraining ads;
  bool quiet = false;  // nothing on stdout
};

// Writes a model of follows, and one of ads once any was shown. Services that are up use them from then on. Prints how
// good they are. Errors: NOT_FOUND (no such stores); those of the stores and of training.
[[nodiscard]] absl::Status Train(const TrainOptions& options);

}  // namespace curtail::social
