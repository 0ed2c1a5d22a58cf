// SPDX-License-Identifier: Apache-2.0
//
// left_testing.h - what the services keep of users that were deleted, behind what clients are shown.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/social/tests/social_testing.h"

namespace curtail::social {

// A Leftovers asks the services themselves. Thread-compatible.
class Leftovers {
 public:
  // `app` outlives it.
  explicit Leftovers(SocialDeployment* app);

  // Names all that is left of a user, which may have blocked `others` or been blocked; empty: nothing. Errors
  // count as something.
  std::string Of(uint64_t user, const std::vector<uint64_t>& others) const;

 private:
  const std::unique_ptr<Channel> user_, storage_, graph_, block_user_, favorite_, messaging_;
};

}  // namespace curtail::social
