// SPDX-License-Identifier: Apache-2.0
//
// parts.h - the five services that composing a post calls. Each does the little that its counterpart in
// DeathStarBench does before it reaches its database, which there is none of here.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "curtail/rpc/service.h"

namespace curtail::study {

inline constexpr std::array<std::string_view, 5> kParts = {"text", "user", "media", "unique-id", "timeline"};

// REQUIRES: `part` is one of kParts.
std::unique_ptr<Service> MakePart(std::string_view part);

}  // namespace curtail::study
