// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/internal/output_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"

namespace curtail::internal {
namespace {

constexpr int kMostLinks = 40;  // as in the kernel

}  // namespace

OutputPath FollowLinks(const std::string& path) {
  std::error_code error;
  const std::filesystem::path open_files = std::filesystem::canonical("/proc/self/fd", error);
  std::filesystem::path at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    const std::filesystem::path parent = at.parent_path();
    const std::filesystem::path folder = std::filesystem::canonical(parent.empty() ? "." : parent, error);
    if (error) return {at.string()};
    // Such a link names an open file. The text of the link may name another file, or none.
    int fd = -1;
    if (folder == open_files && absl::SimpleAtoi(at.filename().string(), &fd)) return {path, fd};
    const std::filesystem::path next = std::filesystem::read_symlink(at, error);
    if (error) return {at.string()};
    at = folder / next;
  }
  return {path};
}

bool IsStdout(const std::string& path) {
  if (path == "-") return true;
  struct stat named{}, out{};
  if (stat(path.c_str(), &named) != 0 || fstat(STDOUT_FILENO, &out) != 0) return false;
  if (S_ISCHR(out.st_mode) && isatty(STDOUT_FILENO) == 0) return false;
  return named.st_dev == out.st_dev && named.st_ino == out.st_ino;
}

}  // namespace curtail::internal
