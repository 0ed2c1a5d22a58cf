// SPDX-License-Identifier: Apache-2.0
//
// new_command.h - `curtail new`: writes an application to begin one's own with.
#pragma once

#include <string>

#include "curtail/term/console.h"

namespace curtail::tool {

struct NewFlags {
  std::string application;
  std::string services = "front,catalogue,stock";  // the first is what clients call
};

// Writes the folder `application`, which is not there yet. Returns the exit code.
int RunNew(const NewFlags& flags, Console& console);

}  // namespace curtail::tool
