// SPDX-License-Identifier: Apache-2.0
//
// rentals.h - what a rental costs, and how `rent` keeps it, for the services and the audit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/strings.h"
#include "rentals.pb.h"

namespace curtail::media {

inline constexpr uint32_t kMostDays = 30;
inline constexpr int64_t kDayMs = 86'400'000;
// A row of a rental may have this state, too: it will be REFUSED, once its charge is void. Clients are shown PENDING.
inline constexpr int kGivenUp = 100;

inline int64_t PriceOf(uint32_t days) { return 200 + 50 * int64_t{days}; }

// DATA_LOSS: the bytes of the row with this id are not a rental.
inline absl::Status ReadRental(uint64_t id, std::string_view bytes, KeptRental* kept) {
  if (kept->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return absl::DataLossError(Join("rental ", id, " is unreadable"));
}

inline Charge ChargeOf(uint64_t user, uint32_t round, const Rental& rental) {
  Charge charge;
  charge.set_rental(rental.id());
  charge.set_round(round);
  charge.set_user(user);
  charge.set_cents(rental.cents());
  return charge;
}

}  // namespace curtail::media
