// SPDX-License-Identifier: Apache-2.0
//
// scratch.h - a folder for files of a run.
#pragma once

#include <string>

namespace curtail::bench {

// A ScratchFolder is a new folder that is removed with all its files at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }  // empty when it could not be made
  // The path of a file in it; empty when the folder could not be made.
  std::string File(const std::string& name) const;

 private:
  std::string path_;
};

// The whole file, empty when it cannot be read.
std::string ReadFile(const std::string& path);
// False when that fails.
bool WriteFile(const std::string& path, const std::string& text);

}  // namespace curtail::bench
