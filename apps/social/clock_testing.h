// SPDX-License-Identifier: Apache-2.0
//
// clock_testing.h - a wall clock that a test sets, for the services that it starts.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "curtail/base/strings.h"

namespace curtail::social {

// The wall clock of all programs that Words() started. Thread-safe for one that sets it.
class SetClock {
 public:
  // `library` is made of clock_preload.cc. Null, as with a sanitizer: the clock is not set.
  explicit SetClock(const char* library) : library_(library == nullptr ? -1 : open(library, O_RDONLY)) {
    EXPECT_TRUE(library == nullptr || library_ >= 0) << library;
    SetAhead(0);
  }
  ~SetClock() {
    close(library_);
    close(clock_);
  }
  SetClock(const SetClock&) = delete;
  SetClock& operator=(const SetClock&) = delete;

  // Of the true time.
  void SetAhead(int seconds) const { EXPECT_EQ(pwrite(clock_, &seconds, sizeof(seconds), 0), 4); }
  // Come before the words of a program.
  std::vector<std::string> Words() const {
    if (library_ < 0) return {};
    return {"env", Join("LD_PRELOAD=/proc/self/fd/", library_), Join("CURTAIL_CLOCK=", clock_)};
  }

 private:
  // Inherited by the programs.
  const int library_;
  const int clock_ = memfd_create("clock", 0);
};

}  // namespace curtail::social
