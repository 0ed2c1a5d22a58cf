// SPDX-License-Identifier: Apache-2.0
//
// exit_code.h - what `curtail` exits with; scripts rely on these numbers.
#pragma once

namespace curtail {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,         // something else went wrong: no server, disk full, a child that died
  kVoid = 98,          // a load run measured its own generator: its numbers must not be believed
  kThreshold = 99,     // the run went well, but a --fail-if condition does not hold
  kBadConfig = 104,    // a flag, an address or a file that cannot be
  kInterrupted = 105,  // SIGINT or SIGTERM; what was measured until then was printed
};

}  // namespace curtail
