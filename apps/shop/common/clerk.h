// SPDX-License-Identifier: Apache-2.0
//
// clerk.h - who enters products, stock and discounts, and refunds orders.
//
// The clerk has no name and no password, so nobody registers as the clerk or guesses a way in. It has a token that only the secret of
// the application makes: an operator who can read the secret is the clerk.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "apps/kit/data/data.h"

namespace curtail::shop {

// The clerk as the user of a session. Ids of users begin with a time (id_source.h), so no user gets this one.
inline constexpr uint64_t kClerk = 1;

// Returns a token of the clerk, which is valid for so many hours. Errors: as apps::TokenSecret().
absl::StatusOr<std::string> ClerkToken(const apps::DataOptions& data, int64_t hours);

}  // namespace curtail::shop
