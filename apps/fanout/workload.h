// SPDX-License-Identifier: Apache-2.0
//
// workload.h - what the load generator sends to the null fan-out.
#pragma once

#include "apps/kit/load/requests.h"

namespace curtail::fanout {

// The same request of 64 bytes each time. Has no options.
apps::AppRequests Requests();

}  // namespace curtail::fanout
