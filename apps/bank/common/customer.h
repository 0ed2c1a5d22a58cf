// SPDX-License-Identifier: Apache-2.0
//
// customer.h - the address, email and phone of a customer, as the bank takes them.
#pragma once

#include "absl/status/statusor.h"
#include "services.pb.h"

namespace curtail::bank {

// Returns what an order says about a customer; the phone is without spaces, hyphens and parentheses. INVALID_ARGUMENT names the field that
// is wrong (bank.proto has their forms): an email has one @, and a domain with a dot.
[[nodiscard]] absl::StatusOr<Customer> CheckedCustomer(const CustomerOrder& order);

}  // namespace curtail::bank
