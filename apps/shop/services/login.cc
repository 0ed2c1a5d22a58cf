// SPDX-License-Identifier: Apache-2.0
//
// Login: names, passwords and sessions of users.
#include "apps/kit/accounts/hosted.h"
#include "apps/shop/data.h"

namespace curtail::shop {

HostedService HostedLogin() {
  return apps::HostedUser(kApplication, /*beside=*/nullptr, "login", /*ids=*/"transaction-id");
}

}  // namespace curtail::shop
