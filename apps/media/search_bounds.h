// SPDX-License-Identifier: Apache-2.0
//
// search_bounds.h - the bounds of searches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "curtail/base/strings.h"

namespace curtail::media {

inline constexpr size_t kMostQueryBytes = 256;
inline constexpr uint32_t kMostHits = 1100;  // that a search shows, page by page

}  // namespace curtail::media
