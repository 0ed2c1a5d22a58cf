// SPDX-License-Identifier: Apache-2.0
//
// data.h - what the kit calls this application.
#pragma once

#include "apps/kit/data/data.h"

namespace curtail::social {

inline constexpr char kApplication[] = "social";
// The issuer that tokens name.
inline constexpr char kIssuer[] = "curtail-social";

// Where the services keep their data.
struct Data : apps::DataOptions {
  Data() { application = kApplication; }
};

}  // namespace curtail::social
