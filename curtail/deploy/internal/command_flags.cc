// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/internal/command_flags.h"

#include <algorithm>

namespace curtail::deploy {

FlagValues FlagsOf(const std::vector<std::string>& run) {
  FlagValues flags;
  for (size_t i = 1; i < run.size(); ++i) {
    const size_t equals = run[i].starts_with("--") ? run[i].find('=') : std::string::npos;
    const std::string flag = run[i].substr(0, equals);
    auto known = std::ranges::find(flags, flag, &FlagValues::value_type::first);
    if (known == flags.end()) known = flags.insert(known, {flag, {}});
    if (equals != std::string::npos) {
      known->second.push_back(run[i].substr(equals));
    } else if (i + 1 < run.size() && !run[i + 1].starts_with("--")) {
      known->second.push_back(run[++i]);
    }
  }
  return flags;
}

void AddFlag(const FlagValues::value_type& flag, std::vector<std::string>* run) {
  const auto& [name, values] = flag;
  if (values.empty()) run->push_back(name);
  for (const std::string& value : values) {
    if (value.starts_with('=')) {
      run->push_back(name + value);
    } else {
      run->insert(run->end(), {name, value});
    }
  }
}

}  // namespace curtail::deploy
