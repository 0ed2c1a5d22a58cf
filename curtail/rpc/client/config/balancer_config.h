// SPDX-License-Identifier: Apache-2.0
//
// balancer_config.h - the balancers of a service config.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "curtail/rpc/client/balancer/balancer.h"
#include "curtail/rpc/client/config/json_field.h"

namespace curtail::internal {

// The first balancer of the list that there is. Errors: INVALID_ARGUMENT, which names the field.
absl::Status ReadBalancers(const Field& field, std::optional<BalancerOptions>* balancer);

}  // namespace curtail::internal
