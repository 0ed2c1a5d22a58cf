// SPDX-License-Identifier: Apache-2.0
//
// verify_command.h - `curtail verify`: whether a profile chooses well at loads that it was not trained at.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "curtail/term/console.h"
#include "tools/curtail/train/subject.h"

namespace curtail::tool {

struct VerifyFlags {
  SubjectFlags subject;
  std::string profile;
  bool any_machine = false;
  std::string loads;  // empty: between trained ones
  int count = 6;      // of those
  int search = 3;
  int duels = 5;
  double seconds = 2;    // of a cell
  double max_loss = 10;  // percent
  bool quick = false;
  bool dry_run = false;
};

// Runs it. Returns the exit code: 99 when the chosen config loses more than max_loss somewhere.
int RunVerify(const VerifyFlags& flags, Console& console, const std::atomic<bool>& stop);

}  // namespace curtail::tool
