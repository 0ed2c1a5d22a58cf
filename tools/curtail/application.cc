// SPDX-License-Identifier: Apache-2.0
#include "application.h"

#include "absl/strings/str_cat.h"

namespace curtail::tool {
namespace {

constexpr std::string_view kHdSearch = "hdsearch";

}  // namespace

bool IsApplication(std::string_view name) { return name == kHdSearch; }

absl::StatusOr<std::unique_ptr<Application>> MakeApplication(std::string_view name,
                                                             const ApplicationOptions& options) {
  if (name == kHdSearch) return MakeHdSearch(options);
  return absl::NotFoundError(absl::StrCat("no application \"", std::string(name), "\"; there is hdsearch"));
}

}  // namespace curtail::tool
