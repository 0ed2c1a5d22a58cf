// SPDX-License-Identifier: Apache-2.0
//
// Search index: the words of a part of the products, their tags, their prices as numbers.
#include "apps/kit/index/index_service.h"
#include "apps/shop/data.h"

namespace curtail::shop {

HostedService HostedSearchIndex() { return apps::HostedSearchIndex(kApplication); }

}  // namespace curtail::shop
