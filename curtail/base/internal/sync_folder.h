// SPDX-License-Identifier: Apache-2.0
//
// sync_folder.h - names of files that outlive a loss of power.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "curtail/base/internal/unique_fd.h"

namespace curtail::internal {

// Brings the folder of `path` to the disk, with its names: fsync() of a new or renamed file does not do so by contract. Blocks.
// Returns false, and leaves errno, if that failed; true where the file system has no fsync() of folders (EINVAL).
inline bool SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  const UniqueFd fd(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd && (fsync(fd.get()) == 0 || errno == EINVAL);
}

}  // namespace curtail::internal
