// SPDX-License-Identifier: Apache-2.0
#include "bench/common/find_program.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace curtail::bench {

std::optional<std::string> FindProgram(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (absl::StrContains(name, '/')) {
    return access(name.c_str(), X_OK) == 0 ? std::optional(name) : std::nullopt;
  }
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const std::string file = absl::StrCat(folder, "/", name);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

}  // namespace curtail::bench
