// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the requests of `curtail load bank`: of 1,000, 400 balances, 269 pages of movements, 180 payments, 80 transfers
// between accounts of one customer, 30 purchases, 20 payments of cards, 20 quotes of loans, 1 application for a loan; or
// one of these kinds.
#pragma once

#include "apps/kit/user_requests.h"

namespace curtail::bank {

apps::AppRequests Requests();

}  // namespace curtail::bank
