// SPDX-License-Identifier: Apache-2.0
//
// reserved.h - what `inventory` has done for an order, for the service and the audit.
#pragma once

#include <cstdint>

namespace curtail::shop {

// As the table of reservations has them.
enum class Reserved : uint8_t { kNone, kReserved, kSold, kReleased, kRefused, kReturned };

}  // namespace curtail::shop
