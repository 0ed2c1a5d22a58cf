// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the requests of `curtail load shop`: mixes, as docs/applications.md lists them, of the users that Fill() has left.
#pragma once

#include "apps/kit/accounts/user_requests.h"

namespace curtail::shop {

apps::AppRequests Requests();

}  // namespace curtail::shop
