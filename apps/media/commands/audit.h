// SPDX-License-Identifier: Apache-2.0
//
// audit.h - whether the rentals and the charges of the stores agree.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace curtail::media {

// Audits the wallets in the folder `data`, while no user acts: each active rental is paid for, each other one is not. DATA_LOSS names the
// first row that is wrong. Errors: as LookAtData(); UNAVAILABLE while a rental or a refund is open.
absl::Status Audit(const std::string& data);

}  // namespace curtail::media
