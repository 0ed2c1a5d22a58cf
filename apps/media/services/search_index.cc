// SPDX-License-Identifier: Apache-2.0
//
// Search index: the words of a part of the movies, their genres as tags, their years as numbers.
#include "apps/kit/index/index_service.h"
#include "apps/media/data.h"

namespace curtail::media {

HostedService HostedSearchIndex() { return apps::HostedSearchIndex(kApplication); }

}  // namespace curtail::media
