// SPDX-License-Identifier: Apache-2.0
//
// audit.h - checks the books of a bank at rest.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace curtail::bank {

// Checks the books of each shard by its rules, that what left the shards has arrived if no transfer is pending, and that each
// account that is listed has books in its shard under the same owner. Loans owe what their schedules say, and deposits have
// their interest, if nothing is on its way. Errors: DATA_LOSS with the first
// row that breaks a rule; errors of ShardsIn() and of the stores.
[[nodiscard]] absl::Status Audit(const std::string& data);

}  // namespace curtail::bank
