// SPDX-License-Identifier: Apache-2.0
//
// closest.h - which of some names was probably meant, for errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace curtail::internal {

// The one of `names` that is `wrong` behind a package, or from which it differs by the fewest typing errors:
// letters changed, left out, added or swapped; capitals and underscores are ignored. Empty when all differ by
// more than a third.
std::string Closest(std::string_view wrong, const std::vector<std::string>& names);

// "; did you mean \"hdsearch\"?" for "hdserch", or nothing when no name is near enough.
std::string DidYouMean(std::string_view wrong, const std::vector<std::string>& names);

// "; did you mean \"Say\"?", or when no name is near enough all of them: "; write Say, Sing or Shout".
std::string WriteHint(std::string_view wrong, const std::vector<std::string>& names);

// "; did you mean \"Say\"?", or nothing; and the names when they are few: "; there are Say, Sing".
std::string NamesHint(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace curtail::internal
