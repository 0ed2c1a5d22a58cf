// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/read_file.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "curtail/base/strings.h"

namespace curtail {

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    const std::string text = Join("cannot open ", path, ": ", std::generic_category().message(errno));
    const int error = errno;
    if (error == ENOENT) return absl::NotFoundError(text);
    // The path that the caller gave is wrong; other errors are the machine's.
    const bool theirs = error == EACCES || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG;
    return theirs ? absl::InvalidArgumentError(text) : absl::InternalError(text);
  }
  std::string content(limit + 1, '\0');
  errno = 0;
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (in.bad()) {
    const std::string text = Join("cannot read ", path, ": ", std::generic_category().message(errno));
    return errno == EISDIR ? absl::InvalidArgumentError(text) : absl::InternalError(text);
  }
  content.resize(static_cast<size_t>(in.gcount()));
  if (content.size() > limit) {
    return absl::ResourceExhaustedError(Join(path, " is longer than ", limit, " bytes"));
  }
  return content;
}

}  // namespace curtail
