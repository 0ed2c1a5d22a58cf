// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/internal/error_texts.h"

#include "absl/strings/str_cat.h"
#include "curtail/base/strings.h"

namespace curtail::internal {

std::string OtherTexts(std::string_view code) { return Join(code, ": (other texts)"); }

void AddError(const std::string& error, uint64_t count, std::map<std::string, uint64_t>* errors) {
  const std::string code = error.substr(0, error.find(": ")), others = OtherTexts(code);
  if (error == others || errors->contains(error)) {
    (*errors)[error] += count;
    return;
  }
  const std::string prefix = code + ": ";
  int texts = errors->contains(code) ? 1 : 0;
  for (auto at = errors->lower_bound(prefix); at != errors->end() && at->first.starts_with(prefix); ++at) {
    if (at->first != others) ++texts;
  }
  (*errors)[texts < kMaxTextsOfCode ? error : others] += count;
}

}  // namespace curtail::internal
