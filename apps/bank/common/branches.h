// SPDX-License-Identifier: Apache-2.0
//
// branches.h - the branches of the bank, and who advises customers there. Both are generated from a fixed seed: no real
// branch or person is meant, and each process has the same.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "bank.curtail.h"

namespace curtail::bank {

// All of them, in the order of their ids, which begin with 1.
const std::vector<Branch>& AllBranches();
// All of them, as AllBranches(). A branch has several.
const std::vector<Representative>& AllRepresentatives();

// The distance on a sphere. REQUIRES: CheckPlace() of both.
double KilometresBetween(const Place& a, const Place& b);
// INVALID_ARGUMENT: a degree is out of bounds, or not a number.
absl::Status CheckPlace(const Place& place);

}  // namespace curtail::bank
