// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/testing/preload.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "curtail/base/strings.h"

#ifndef CLOCK_LIBRARY  // in a build with a sanitizer
#define CLOCK_LIBRARY nullptr
#define FULL_DISK_LIBRARY nullptr
#endif

namespace curtail::apps {

Preload::Preload(const char* library, const char* variable)
    : variable_(variable),
      library_(library == nullptr ? -1 : open(library, O_RDONLY)),
      told_(memfd_create("told", 0)) {
  EXPECT_TRUE(library == nullptr || library_ >= 0) << library;
}

Preload::~Preload() {
  close(library_);
  close(told_);
}

std::vector<std::string> Preload::Words() const {
  if (library_ < 0) return {};
  return {"env", Join("LD_PRELOAD=/proc/self/fd/", library_), Join(variable_, "=", told_)};
}

void Preload::Tell(const void* value, size_t bytes) const {
  EXPECT_EQ(pwrite(told_, value, bytes, 0), static_cast<ssize_t>(bytes));
}

FullDisk::FullDisk() : Preload(FULL_DISK_LIBRARY, "CURTAIL_FULL_DISK") {}
SetClock::SetClock() : Preload(CLOCK_LIBRARY, "CURTAIL_CLOCK") { SetAhead(0); }

}  // namespace curtail::apps
