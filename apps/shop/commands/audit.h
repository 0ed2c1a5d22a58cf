// SPDX-License-Identifier: Apache-2.0
//
// audit.h - checks what the services of the application keep against each other.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace curtail::shop {

// Checks the folder `data` while no user buys:
//
//  1  Of each product, on hand, reserved and sold sum to what was delivered. What is sold, COMMITTED orders have bought.
//  2  A COMMITTED order has one charge, captured, of its total; one invoice; one shipment; and its lines are sold. A REJECTED one
//     has none of these, and holds nothing. Each charge, invoice and shipment belongs to an order.
//  3  COMMITTED orders and invoices are numbered 1, 2, 3, ..., and an order's invoice has its number.
//  4  The total of an order is the sum of its lines, less the discount, and shipping.
//  5  A code has the uses of COMMITTED orders, one each, and no more than its limit.
//
// DATA_LOSS names the first row that breaks a rule. UNAVAILABLE: an order is not at its end.
[[nodiscard]] absl::Status Audit(const std::string& data);

}  // namespace curtail::shop
