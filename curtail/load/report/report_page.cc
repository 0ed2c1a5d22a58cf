// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/report_page.h"

#include <span>

#include "curtail/base/embedded_file.h"

namespace curtail {
namespace internal {

std::span<const EmbeddedFile> ReportFiles();  // made by curtail_embed()

}  // namespace internal

std::string ReportPage(std::string_view json) {
  constexpr std::string_view kPlace = "@report@";  // before the page's own script
  const std::string_view page = internal::ReportFiles().front().bytes;
  const size_t at = page.find(kPlace);
  std::string written(page.substr(0, at));
  for (const char c : json) {
    if (c == '<') written += "\\u003c";
    else written += c;
  }
  return written.append(page.substr(at + kPlace.size()));
}

}  // namespace curtail
