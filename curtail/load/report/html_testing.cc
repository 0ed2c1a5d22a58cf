// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/html_testing.h"

#include <vector>

namespace curtail {

std::string BadTag(const std::string& html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    if (end == std::string::npos) return html.substr(at);
    const std::string tag = html.substr(at + 1, end - at - 1);
    if (tag.starts_with("!") || tag.starts_with("meta") || tag.ends_with("/")) continue;
    const std::string name = tag.substr(0, tag.find(' '));
    if (!name.starts_with("/")) {
      open.push_back(name);
    } else if (open.empty() || "/" + open.back() != name) {
      return name;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

}  // namespace curtail
