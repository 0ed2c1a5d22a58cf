// SPDX-License-Identifier: Apache-2.0
#include "apps/media/common/review_list.h"

namespace curtail::media {

HostedService HostedUserReview() {
  using Made = ReviewListService<UserReview, &ReviewRef::author>;
  return apps::HostedWithData<Made>(kApplication, "user-review", Made::Schema());
}

}  // namespace curtail::media
