// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/thread_activity.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace curtail::internal {

bool Sleeps(int tid) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[128];
  const ssize_t n = read(file, text, sizeof text);
  close(file);
  const std::string_view stat(text, n > 0 ? static_cast<size_t>(n) : 0);
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string_view::npos && name_end + 2 < stat.size() &&
         (stat[name_end + 2] == 'S' || stat[name_end + 2] == 'D');
}

Nanos CpuTimeOf(int tid) {
  constexpr clockid_t kOfAThread = 4, kScheduled = 2;  // as pthread_getcpuclockid() makes them
  timespec used{};
  if (clock_gettime((~static_cast<clockid_t>(tid) << 3) | kOfAThread | kScheduled, &used) != 0)
    return Nanos(0);
  return std::chrono::seconds(used.tv_sec) + Nanos(used.tv_nsec);
}

}  // namespace curtail::internal
