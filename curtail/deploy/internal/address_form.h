// SPDX-License-Identifier: Apache-2.0
//
// address_form.h - checks the form of an address, before a program is started with it.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace curtail::deploy {

// Errors: INVALID_ARGUMENT where `text` is neither HOST:PORT nor one of the other forms of Address. Looks up no name, and
// takes a text with ${...} as it is. Thread-safe.
absl::Status CheckAddress(std::string_view text);

}  // namespace curtail::deploy
