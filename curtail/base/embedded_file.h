// SPDX-License-Identifier: Apache-2.0
//
// embedded_file.h - a file that the build has put into the program: curtail_embed() in
// cmake/CurtailEmbed.cmake.
#pragma once

#include <string_view>

namespace curtail {

// A value type. Its text lives as long as the program.
struct EmbeddedFile {
  std::string_view name;  // "index.html"
  std::string_view bytes;
};

}  // namespace curtail
