// SPDX-License-Identifier: Apache-2.0
//
// check.h - compares the answers of any server of bank.proto with a model of the bank.
//
// Customers of its own open accounts, take cards, and move money between them. Some requests are repeated, several at a time, some are
// wrong, and some ask for what is another's. The model knows which answer each must have, as nobody else acts for these customers.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "apps/kit/load/target.h"

namespace curtail::bank {

struct CheckOptions {
  apps::Target target;
  uint64_t seed = 0;          // of names and operations; 0: another one each time
  uint64_t operations = 300;  // some are several calls
  double seconds = 120;       // that all may take
};

// Prints the seed, and each answer that differs from the model. Stops at the tenth. Errors: DATA_LOSS: an answer differed;
// DEADLINE_EXCEEDED: the time is over; ALREADY_EXISTS: the server has had this seed; else of the target.
[[nodiscard]] absl::Status CheckBank(const CheckOptions& options);

}  // namespace curtail::bank
