// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the requests of `curtail load bank`: of 100, 44 balances, 28 pages of movements, 19 payments and 9 transfers
// between accounts of one customer; or one of these kinds.
#pragma once

#include "apps/kit/user_requests.h"

namespace curtail::bank {

apps::AppRequests Requests();

}  // namespace curtail::bank
