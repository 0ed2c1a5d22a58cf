// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the requests of `curtail load bank`: mixes, as docs/applications.md lists them, of customers whom Fill() has left.
#pragma once

#include <span>
#include <string_view>

#include "apps/kit/accounts/user_requests.h"

namespace curtail::bank {

std::span<const apps::NamedMix> AllMixes();
// The method of a kind in a mix.
std::string_view PathOf(std::string_view kind);

apps::AppRequests Requests();

}  // namespace curtail::bank
