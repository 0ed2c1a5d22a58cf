// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a service, has its wall clock set by a test (preload.h). Its steady clock goes on. The
// open file of the number CURTAIL_CLOCK has by how many seconds the wall clock is ahead.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <ctime>

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  static const std::atomic<int>* const ahead_s = [] {
    const char* const number = std::getenv("CURTAIL_CLOCK");
    void* const file = number == nullptr
                           ? MAP_FAILED
                           : mmap(nullptr, sizeof(int), PROT_READ, MAP_SHARED, std::atoi(number), 0);
    return file == MAP_FAILED ? nullptr : static_cast<const std::atomic<int>*>(file);
  }();
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME && ahead_s != nullptr) time->tv_sec += ahead_s->load();
  return result;
}
