// SPDX-License-Identifier: Apache-2.0
//
// output_file.h - a file that is there complete or not at all.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace curtail::apps {

// An OutputFile is written beside its name and takes it when it is complete and on the disk. After Commit() the name is
// on the disk, too. A device or a pipe, which nothing may replace, is written to as it is. Not thread-safe. Errors: what
// the system says (NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED, ...) with the path.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  // Leaves what was there before, unless Commit() returned OK.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  [[nodiscard]] absl::Status Write(std::string_view bytes);
  // Nothing may be written afterwards.
  [[nodiscard]] absl::Status Commit();

 private:
  absl::Status Failed();

  const std::string path_;
  const std::string written_;  // path_ itself for what nothing may replace
  std::FILE* file_;            // null: it could not be opened, or was committed
  int error_ = 0;              // errno of what failed first
};

}  // namespace curtail::apps
