// SPDX-License-Identifier: Apache-2.0
//
// suggest.h - what a wrong name was probably meant to be. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace curtail::tool {

// "; did you mean \"hdsearch\"?" for "hdserch", or nothing when no name is near enough.
std::string DidYouMean(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace curtail::tool
