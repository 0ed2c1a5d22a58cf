// SPDX-License-Identifier: Apache-2.0
//
// page.h - the bounds of requests that several services share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "apps/kit/page.h"

namespace curtail::social {

// Posts in one request of read-post: each may have two authors to look at.
inline constexpr int kMostViewed = apps::kMostIds / 2;

// Stands in a text for a URL, before its code.
inline constexpr char kShortPrefix[] = "http://short-url/";

}  // namespace curtail::social
