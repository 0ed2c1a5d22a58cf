// SPDX-License-Identifier: Apache-2.0
//
// Search index: the words of a part of the posts.
#include "apps/kit/index/index_service.h"
#include "apps/social/data.h"

namespace curtail::social {

HostedService HostedSearchIndex() { return apps::HostedSearchIndex(kApplication); }

}  // namespace curtail::social
