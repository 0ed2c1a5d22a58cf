// SPDX-License-Identifier: Apache-2.0
#include "apps/shop/common/clerk.h"

#include "apps/kit/accounts/signed_token.h"
#include "apps/kit/wall_clock.h"

namespace curtail::shop {

absl::StatusOr<std::string> ClerkToken(const apps::DataOptions& data, int64_t hours) {
  const absl::StatusOr<std::string> secret = apps::TokenSecret(data);
  if (!secret.ok()) return secret.status();
  const int64_t now_s = apps::NowMs() / 1000;
  return apps::SignToken(*secret, apps::IssuerOf(data), kClerk, /*id=*/"0.0", now_s, now_s + hours * 3600);
}

}  // namespace curtail::shop
