// SPDX-License-Identifier: Apache-2.0
//
// secrets.h - an application's secret, and what follows from it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail::apps {

// The secret in the file `path`; a new one, which only this user can read, if there is no file. All processes that ask
// get the same. Errors: FAILED_PRECONDITION (too short, or readable to others).
absl::StatusOr<std::string> SecretOf(const std::string& path);

// Returns HMAC-SHA-256 of `text`: 32 bytes, from which nobody without the secret finds a text, even one of few.
std::string Mac(std::string_view secret, std::string_view text);

// Random bytes. Errors: INTERNAL.
absl::StatusOr<std::string> RandomBytes(size_t count);

}  // namespace curtail::apps
