// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the requests of `curtail load bank`: mixes, as docs/applications.md lists them, of customers whom Fill() has left.
#pragma once

#include "apps/kit/accounts/user_requests.h"

namespace curtail::bank {

apps::AppRequests Requests();

}  // namespace curtail::bank
