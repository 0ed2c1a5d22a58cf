// SPDX-License-Identifier: Apache-2.0
//
// loopback_testing.h - an address of this machine for the servers of one test.
#pragma once

#include <unistd.h>

#include <string>

#include "curtail/base/strings.h"

namespace curtail {

// An IPv4 address of this machine that only this process and its children listen on, and no connection comes from. No
// other test takes a port there: a server that is started again finds its port free.
inline std::string OwnHost() {
  const int pid = getpid();
  return Join("127.", 16 + pid / 65536 % 200, ".", pid / 256 % 256, ".", pid % 256);
}

// OwnHost() with any port that is free.
inline std::string OwnLoopback() { return Join(OwnHost(), ":0"); }

}  // namespace curtail
