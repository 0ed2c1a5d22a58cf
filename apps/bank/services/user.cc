// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/data.h"
#include "apps/kit/accounts/hosted.h"

namespace curtail::bank {

HostedService HostedUser() { return apps::HostedUser(kApplication); }

}  // namespace curtail::bank
