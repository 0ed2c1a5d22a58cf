// SPDX-License-Identifier: Apache-2.0
//
// flags.h - values of flags that are more than a number. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"

namespace curtail::tool {

// "10s", "1m30s", "500us", "0". Errors: INVALID_ARGUMENT for anything else, also for a number without a unit,
// for negative ones and those over a day.
absl::StatusOr<Nanos> ParseDuration(std::string_view text);

// The same for the value of `flag`, which an error starts with: "--timeout: '5' is not a duration ...".
absl::StatusOr<Nanos> DurationOf(std::string_view flag, std::string_view text);
// ... that must be above 0.
absl::StatusOr<Nanos> TimeLimitOf(std::string_view flag, std::string_view text);

// "0a 1b2c" -> bytes; white space between bytes is skipped. Errors: INVALID_ARGUMENT.
absl::StatusOr<std::string> ParseHex(std::string_view text);

// "50,200,1k" -> numbers > 0; k means thousands. Errors: INVALID_ARGUMENT.
absl::StatusOr<std::vector<double>> ParseRates(std::string_view text);

// "500", "1k", "2.5k", "1M" -> a number. Errors: INVALID_ARGUMENT.
absl::StatusOr<double> ParseNumber(std::string_view text);

// "KEY: VALUE" with *** in place of the value where the key sounds like a secret: authorization, cookie, token, ...
std::string WithoutSecret(std::string_view line);

// The command line as a shell takes it, with the secrets of -H and --metadata left out.
std::string CommandText(const std::vector<std::string>& arguments);

// So that a long run is not started whose result could not be written. OK for an empty path and for "-". Of a link it
// judges the file that the link leads to. Errors: INVALID_ARGUMENT that says why: a directory, a folder that is not there
// or may not be written to.
absl::Status CheckWritable(const std::string& path);

}  // namespace curtail::tool
