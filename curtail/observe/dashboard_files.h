// SPDX-License-Identifier: Apache-2.0
//
// dashboard_files.h - the files of web/dist, compressed by gzip. CMake writes the source that defines them.
#pragma once

#include <string_view>

namespace curtail::observe {

extern const std::string_view kDashboardHtml, kDashboardJs, kDashboardCss;

}  // namespace curtail::observe
