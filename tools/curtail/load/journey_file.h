// SPDX-License-Identifier: Apache-2.0
//
// journey_file.h - the file of --journey, as docs/load.md describes it, and the requests that it comes to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/message/json_journey.h"
#include "tools/curtail/load/load_flags.h"
#include "tools/curtail/load/load_setup.h"

namespace curtail::tool {

// The steps of a text; `origin` is the name of its file. What they ask for is checked by MakeJsonJourney().
// Errors: INVALID_ARGUMENT, "shop.yaml:7: what is wrong".
absl::StatusOr<std::vector<JourneyStep>> ParseJourney(std::string_view yaml, std::string_view origin);

// OK if --journey is not given, or no flag contradicts it. Errors: INVALID_ARGUMENT naming the flag.
absl::Status CheckJourney(const LoadFlags& flags);
// The journeys of --journey. Errors: those of reading and parsing the file, and of Catalog. The maker may find those of
// MakeJsonJourney().
absl::StatusOr<WorkloadMaker> MakeJourneys(const LoadFlags& flags, const LoadTargets& targets);

}  // namespace curtail::tool
