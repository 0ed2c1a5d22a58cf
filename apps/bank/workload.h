// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the requests of `curtail load bank`: mixes, as docs/applications.md lists them, of customers whom Fill() has left.
#pragma once

#include <string_view>

#include "apps/bank/mixes.h"
#include "apps/kit/accounts/user_requests.h"

namespace curtail::bank {

// The method of a kind.
std::string_view PathOf(Kind kind);

apps::AppRequests Requests();

}  // namespace curtail::bank
