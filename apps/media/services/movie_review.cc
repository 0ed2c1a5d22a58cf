// SPDX-License-Identifier: Apache-2.0
#include "apps/media/common/review_list.h"

namespace curtail::media {

HostedService HostedMovieReview() {
  using Made = ReviewListService<MovieReview, &ReviewRef::movie>;
  return apps::HostedWithData<Made>(kApplication, "movie-review", Made::Schema());
}

}  // namespace curtail::media
