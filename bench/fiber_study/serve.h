// SPDX-License-Identifier: Apache-2.0
//
// serve.h - what the processes of the study do.
#pragma once

#include "bench/common/tier.h"

namespace curtail::study {

using bench::Role;
using bench::Tier;

// The part that composes. The others are kParts (parts.h), whose variant is a config.
inline constexpr char kComposer[] = "compose";

// Serves until SIGTERM. Returns the exit code.
int Serve(const Role& role);

}  // namespace curtail::study
