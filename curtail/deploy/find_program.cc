// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/find_program.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace curtail::deploy {
namespace {

// The folders of a list like $PATH.
std::vector<std::string> FoldersOf(const char* variable) {
  const char* list = std::getenv(variable);
  if (list == nullptr) return {};
  return absl::StrSplit(list, ':', absl::SkipEmpty());
}

// The first program of this name; empty: there is none.
std::string In(const std::vector<std::string>& folders, const std::string& name) {
  std::error_code error;
  for (const std::string& folder : folders) {
    std::string place = (std::filesystem::path(folder) / name).string();
    if (access(place.c_str(), X_OK) == 0 && !std::filesystem::is_directory(place, error)) return place;
  }
  return {};
}

}  // namespace

bool HasTool(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), R_OK) == 0;
  return !In(FoldersOf("PATH"), name).empty();
}

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;  // whether it can be run is seen when it is
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<std::string> folders = FoldersOf("CURTAIL_PATH");
  const size_t first_own = folders.size();
  for (const std::string& folder :
       {std::string("."), std::string(CURTAIL_LIBEXEC_FROM_BIN), std::string("../gateway"),
        absl::StrCat("../apps/", name), absl::StrCat("../../apps/", name)}) {
    folders.push_back((own / folder).lexically_normal().string());
  }
  for (std::string& folder : FoldersOf("PATH")) folders.push_back(std::move(folder));
  if (std::string place = In(folders, name); !place.empty()) return place;
  return absl::NotFoundError(absl::StrCat(
      "the program ", name, " is missing: it is not in ", folders[first_own], ", ", folders[first_own + 1],
      first_own > 0 ? ", CURTAIL_PATH" : "", " or PATH; ",
      name == "memcached" ? "Debian's package memcached has it"
                          : "build it, give its path, or set CURTAIL_PATH to the folder that has it"));
}

}  // namespace curtail::deploy
