// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the requests of `curtail load media`. `compose` writes reviews; `browse` reads: of 100, 60 pages of movies, 20 searches, 14
// lists of a movie's reviews, 6 of a user's; `rent` rents movies; `open` opens streams of rented movies; `mixed` is 60 pages and
// searches, 15 lists, 10 of `compose`, 10 of `rent`, and 5 of `open` if there are videos.
#pragma once

#include "apps/kit/accounts/user_requests.h"

namespace curtail::media {

apps::AppRequests Requests();

}  // namespace curtail::media
