// SPDX-License-Identifier: Apache-2.0
//
// output_path.h - the place where a result goes that is written to a path. Any thread.
#pragma once

#include <string>

namespace curtail::internal {

// An OutputPath is a path whose links are followed, so that a writer can replace the file and the links stay.
struct OutputPath {
  std::string path;  // the file, which may not exist yet
  int fd = -1;       // the open file of this process that the path names, as /dev/stdout does
};

// Follows the links of `path`, also to a file or a folder that does not exist. Links in a circle stay as they are.
OutputPath FollowLinks(const std::string& path);

// True for "-", and for a path of what is the standard output already: /dev/stdout, or the file that it goes to.
// Devices such as /dev/null are never it.
bool IsStdout(const std::string& path);

}  // namespace curtail::internal
