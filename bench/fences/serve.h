// SPDX-License-Identifier: Apache-2.0
//
// serve.h - the parts that a process of the study may play.
#pragma once

#include "bench/common/tier.h"

namespace curtail::fences {

using bench::Role;
using bench::Tier;

inline constexpr char kLeafA[] = "leaf-a";
inline constexpr char kLeafB[] = "leaf-b";
inline constexpr char kShared[] = "shared";  // over both leaves
inline constexpr char kUpper[] = "upper";    // over a shared one
inline constexpr char kFront[] = "front";    // over the four applications

// Serves until SIGTERM. Returns the exit code.
int Serve(const Role& role);

}  // namespace curtail::fences
