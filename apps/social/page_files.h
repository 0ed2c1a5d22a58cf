// SPDX-License-Identifier: Apache-2.0
//
// page_files.h - the page for browsers: the files of web/dist/social. CMake writes the source.
#pragma once

#include <span>

#include "curtail/base/embedded_file.h"

namespace curtail::social {

std::span<const EmbeddedFile> PageFiles();

}  // namespace curtail::social
