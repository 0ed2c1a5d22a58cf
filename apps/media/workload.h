// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the requests of `curtail load media`. `compose` writes reviews; `browse` reads: of 100, 60 pages of movies, 20 searches, 14
// lists of a movie's reviews, 6 of a user's; `mixed` is 90 of `browse` and 10 of `compose`.
#pragma once

#include "apps/kit/accounts/user_requests.h"

namespace curtail::media {

apps::AppRequests Requests();

}  // namespace curtail::media
