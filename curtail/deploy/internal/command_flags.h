// SPDX-License-Identifier: Apache-2.0
//
// command_flags.h - the flags of a command, for those who make one command of several.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace curtail::deploy {

// Each flag of a command with its values, in the order of the first of each. "=on" is the value of "--flag=on". A word that
// belongs to no flag is as a flag.
using FlagValues = std::vector<std::pair<std::string, std::vector<std::string>>>;
FlagValues FlagsOf(const std::vector<std::string>& run);

// Appends the flag to a command, once for each value.
void AddFlag(const FlagValues::value_type& flag, std::vector<std::string>* run);

}  // namespace curtail::deploy
