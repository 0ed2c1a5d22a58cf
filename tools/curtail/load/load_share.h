// SPDX-License-Identifier: Apache-2.0
//
// load_share.h - the share of a run that one of several generators sends, and when they all start.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/load/message/journey.h"
#include "tools/curtail/load/load_flags.h"
#include "tools/curtail/load/load_setup.h"

namespace curtail::tool {

// "2/3" is the second of three. Errors: INVALID_ARGUMENT.
absl::StatusOr<LoadShare> ParseShare(std::string_view text);

// A time since 1970, written as "2026-01-31T12:00:00Z" or in seconds as `date +%s` prints them. Errors: INVALID_ARGUMENT,
// also where it is not within a day after `now`.
absl::StatusOr<Nanos> ParseStartAt(std::string_view text, Nanos now);

// Puts what --threads, --share and --start-at ask for into `setup`, which has the times of a run. Errors: INVALID_ARGUMENT
// naming the flag.
absl::Status SetShare(const LoadFlags& flags, LoadSetup* setup);

// Adds the time to `setup` that a journey takes longer than one request, before its run and at the end of it.
void AllowForJourney(const Journey& journey, LoadSetup* setup);

}  // namespace curtail::tool
