// SPDX-License-Identifier: Apache-2.0
//
// iban.h - account numbers in the form of ISO 13616.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail::bank {

// The greatest number of an account of this bank: ten digits.
inline constexpr uint64_t kMostNumber = 9'999'999'999;

// Returns the IBAN of an account of this bank. REQUIRES: number <= kMostNumber.
std::string IbanOf(uint64_t number);

// Returns an IBAN of any bank as IbanOf() writes it: without spaces, in capitals. INVALID_ARGUMENT: it has not the form of one,
// or a wrong check sum.
absl::StatusOr<std::string> CheckedIban(std::string_view given);

}  // namespace curtail::bank
