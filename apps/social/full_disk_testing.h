// SPDX-License-Identifier: Apache-2.0
//
// full_disk_testing.h - a disk that is full, or not, for the stores of a test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "curtail/base/strings.h"

namespace curtail::social {

// While a FullDisk is full, no file of a program that Words() started grows beyond its last block:
// the write is short, or fails with ENOSPC. What a file has can be overwritten and read. Thread-safe.
//
// RLIMIT_FSIZE is no such disk: it has another error, and refuses to overwrite, too.
//
// The programs know the disk, and the library made of full_disk_preload.cc, by open files: a PostgreSQL that
// root starts runs as a user that need not reach their paths.
class FullDisk {
 public:
  explicit FullDisk(const char* library) : library_(open(library, O_RDONLY)) {
    EXPECT_GE(library_, 0) << library;
    EXPECT_GE(disk_, 0);
  }
  ~FullDisk() {
    close(library_);
    close(disk_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

  void Fill() { EXPECT_EQ(pwrite(disk_, "1", 1, 0), 1); }
  void Free() { EXPECT_EQ(pwrite(disk_, "0", 1, 0), 1); }
  // Come before the words of a program.
  std::vector<std::string> Words() const {
    return {"env", Join("LD_PRELOAD=/proc/self/fd/", library_), Join("CURTAIL_FULL_DISK=", disk_)};
  }

 private:
  // Inherited by the programs.
  const int library_;
  const int disk_ = memfd_create("disk", 0);
};

}  // namespace curtail::social
