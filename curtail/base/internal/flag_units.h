// SPDX-License-Identifier: Apache-2.0
//
// flag_units.h - units in the values of numeric flags.
#pragma once

#include <string>

#include "curtail/base/clock.h"

namespace curtail::internal {

// Replaces a time with a unit, such as "10s" or "1m30s", by its number of `unit`s. Leaves a plain number as it is.
// Returns what is wrong with other texts, "10sec is not a time; write 10s or 500ms"; else an empty text.
std::string TimeToNumber(Nanos unit, std::string* text);

// Replaces a size with a unit, such as "4MB" or "64MiB", by its number of bytes. As above.
std::string SizeToNumber(std::string* text);

}  // namespace curtail::internal
