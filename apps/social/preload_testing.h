// SPDX-License-Identifier: Apache-2.0
//
// preload_testing.h - a full disk and a wall clock of a test's own, for the programs that it starts.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "curtail/base/strings.h"

namespace curtail::social {

// A library that programs preload, and what the test tells it. The programs know both by open files, which they inherit:
// a PostgreSQL that root starts runs as a user that need not reach their paths. Thread-safe.
class Preload {
 public:
  ~Preload() {
    close(library_);
    close(told_);
  }
  Preload(const Preload&) = delete;
  Preload& operator=(const Preload&) = delete;

  // Come before the words of a program.
  std::vector<std::string> Words() const {
    if (library_ < 0) return {};
    return {"env", Join("LD_PRELOAD=/proc/self/fd/", library_), Join(variable_, "=", told_)};
  }

 protected:
  // `variable` names the file for the library. A null `library`, as with a sanitizer: programs go without.
  Preload(const char* library, const char* variable)
      : variable_(variable), library_(library == nullptr ? -1 : open(library, O_RDONLY)) {
    EXPECT_TRUE(library == nullptr || library_ >= 0) << library;
  }
  template <class Value>
  void Tell(const Value& value) const {
    EXPECT_EQ(pwrite(told_, &value, sizeof(value), 0), static_cast<ssize_t>(sizeof(value)));
  }

 private:
  const char* const variable_;
  const int library_;
  const int told_ = memfd_create("told", 0);
};

// While a FullDisk is full, no file of a program that Words() started grows beyond its last block:
// the write is short, or fails with ENOSPC. What a file has can be overwritten and read.
//
// RLIMIT_FSIZE is no such disk: it has another error, and refuses to overwrite, too.
class FullDisk : public Preload {
 public:
  // `library` is made of full_disk_preload.cc.
  explicit FullDisk(const char* library) : Preload(library, "CURTAIL_FULL_DISK") {}
  void Fill() const { Tell('1'); }
  void Free() const { Tell('0'); }
};

// The wall clock of all programs that Words() started.
class SetClock : public Preload {
 public:
  // `library` is made of clock_preload.cc.
  explicit SetClock(const char* library) : Preload(library, "CURTAIL_CLOCK") { SetAhead(0); }
  // Of the true time.
  void SetAhead(int seconds) const { Tell(seconds); }
};

}  // namespace curtail::social
