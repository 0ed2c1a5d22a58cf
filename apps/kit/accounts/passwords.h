// SPDX-License-Identifier: Apache-2.0
//
// passwords.h - passwords that are kept as scrypt hashes.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail::apps {

// A salt and the hash of a password: scrypt, N = 2^14, r = 8, p = 1. Takes some 50 ms and 16 MiB. Errors: INTERNAL.
absl::StatusOr<std::string> HashPassword(std::string_view password);
// True if `hash` is of the password. Takes as long, whatever `hash` is.
bool IsPassword(std::string_view password, std::string_view hash);

}  // namespace curtail::apps
