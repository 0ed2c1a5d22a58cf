// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/hosted.h"
#include "apps/social/data.h"

namespace curtail::social {

HostedService HostedUniqueId() { return apps::HostedUniqueId(kApplication); }

}  // namespace curtail::social
