// SPDX-License-Identifier: Apache-2.0
//
// temp_dir_testing.h - a folder for one test, removed with all it holds.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace curtail {

class TempDir {
 public:
  TempDir() {
    if (mkdtemp(path_.data()) != nullptr) return;
    std::perror(path_.c_str());
    std::abort();
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Writes a file and returns its path.
  std::string Write(std::string_view name, std::string_view content) const {
    std::ofstream(File(name), std::ios::binary) << content;
    return File(name);
  }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "curtail-test-XXXXXX").string();
};

}  // namespace curtail
