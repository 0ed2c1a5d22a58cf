// SPDX-License-Identifier: Apache-2.0
//
// data.h - the name of this application, its schemas, and answers for each of several orders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "accounts.curtail.h"
#include "apps/kit/accounts/ids.h"
#include "apps/kit/data/data.h"
#include "apps/kit/once.h"
#include "buying.curtail.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"

namespace curtail::shop {

inline constexpr char kApplication[] = "shop";
// Orders in one call of a step, lines of a basket or an order, and of one product in them.
inline constexpr int kMostOrders = 32;
inline constexpr int kMostLines = 100;
inline constexpr uint32_t kMostOfProduct = 99;

// A guest's id has this bit, a user's has not. A guest's session takes this long.
inline constexpr uint64_t kGuestBit = uint64_t{1} << 62;
inline constexpr int64_t kGuestS = 24 * 3600;
inline bool IsGuest(uint64_t owner) { return (owner & kGuestBit) != 0; }

// The schema of services/NAME.sql, which implementations in other languages read, too: one step, which makes what is not there.
std::string SchemaOf(std::string_view name);

// Adds what one of several orders has come to.
inline void AddOutcome(uint64_t order, const absl::Status& status, Outcomes* outcomes) {
  Outcome& outcome = *outcomes->add_outcomes();
  outcome.set_order(order);
  outcome.set_code(status.raw_code());
  outcome.set_why(std::string(Message(status)));
}

}  // namespace curtail::shop
