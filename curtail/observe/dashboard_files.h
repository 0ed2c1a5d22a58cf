// SPDX-License-Identifier: Apache-2.0
//
// dashboard_files.h - the files of web/dist: html, js, css, compressed by gzip. CMake writes the source.
#pragma once

#include <span>

#include "curtail/base/embedded_file.h"

namespace curtail::observe {

std::span<const EmbeddedFile> DashboardFiles();

}  // namespace curtail::observe
