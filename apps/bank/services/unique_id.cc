// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/data.h"
#include "apps/kit/accounts/hosted.h"

namespace curtail::bank {

HostedService HostedUniqueId() { return apps::HostedUniqueId(kApplication); }

}  // namespace curtail::bank
