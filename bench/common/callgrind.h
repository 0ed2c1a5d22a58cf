// SPDX-License-Identifier: Apache-2.0
//
// callgrind.h - how many instructions a program takes at user level, counted by valgrind's callgrind.
//
// A count does not depend on what else the machine does.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace curtail::bench {

// Thread-compatible.
class Callgrind {
 public:
  // Leaves its files in `folder`. Errors: NOT_FOUND (no valgrind in PATH).
  static absl::StatusOr<Callgrind> Find(std::string folder);

  // The words before the command of the next program that is to be counted.
  std::vector<std::string> NextWrapper();
  // The instructions in all the life of the program that ran under the last wrapper. REQUIRES: it has ended. Errors:
  // UNAVAILABLE.
  absl::StatusOr<double> Total() const;

 private:
  Callgrind(std::string valgrind, std::string folder)
      : valgrind_(std::move(valgrind)), folder_(std::move(folder)) {}
  std::string File() const;

  std::string valgrind_;
  std::string folder_;
  int runs_ = 0;
};

}  // namespace curtail::bench
