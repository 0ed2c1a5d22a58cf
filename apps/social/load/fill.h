// SPDX-License-Identifier: Apache-2.0
//
// fill.h - fills a social network through its front end, and leaves sessions for load tests.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "apps/kit/load/fill.h"

namespace curtail::social {

struct FillOptions : apps::FillTarget {
  std::string graph = "none";  // an edge list; none: generated
  uint64_t users = 100;
  uint64_t follows = 2000;
  uint64_t posts = 500;
  uint64_t ads = 24;
};

// Registers the users, or logs them in if they are there, has them follow each other, and has the new ones compose.
// Errors: of the target's flags; the first of a call.
[[nodiscard]] absl::Status Fill(FillOptions options);

}  // namespace curtail::social
