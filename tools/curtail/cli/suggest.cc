// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/cli/suggest.h"

#include "curtail/base/strings.h"
#include "curtail/load/message/internal/closest.h"

namespace curtail::tool {

std::string DidYouMean(std::string_view wrong, const std::vector<std::string>& names) {
  const std::string closest = internal::Closest(wrong, names);
  return closest.empty() || closest == wrong ? "" : Join("; did you mean \"", closest, "\"?");
}

}  // namespace curtail::tool
