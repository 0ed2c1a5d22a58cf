// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/data/folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "curtail/base/strings.h"

namespace curtail::apps {

absl::StatusOr<std::string> DataFolder(std::string_view application, const std::string& given) {
  std::filesystem::path folder = given;
  if (given.empty() || given == "auto") {
    const char* const state = std::getenv("XDG_STATE_HOME");
    const char* const home = std::getenv("HOME");
    if (state != nullptr && *state != '\0') {
      folder = state;
    } else if (home != nullptr && *home != '\0') {
      folder = std::filesystem::path(home) / ".local/state";
    } else {
      return absl::FailedPreconditionError(
          "neither HOME nor XDG_STATE_HOME is set: say where, --data FOLDER");
    }
    folder /= Join("curtail/", application);
  }
  std::error_code error;
  if (!folder.parent_path().empty()) std::filesystem::create_directories(folder.parent_path(), error);
  if (mkdir(folder.c_str(), 0700) == 0) return folder.string();
  const int why = errno;
  if (std::filesystem::is_directory(folder, error)) return folder.string();
  if (why == EEXIST)
    return absl::FailedPreconditionError(Join("--data: ", folder.string(), " is not a folder"));
  return absl::FailedPreconditionError(
      Join("--data: cannot make ", folder.string(), ": ", std::generic_category().message(why)));
}

}  // namespace curtail::apps
