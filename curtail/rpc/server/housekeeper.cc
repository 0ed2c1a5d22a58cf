// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/housekeeper.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "curtail/rpc/server/server_connection.h"

namespace curtail::internal {
namespace {

// While the budget is exceeded: what has a deadline or a reader may go by itself meanwhile.
constexpr Nanos kShedPeriod = std::chrono::milliseconds(100);
// While much is held.
constexpr Nanos kLookPeriod = std::chrono::seconds(5);
// A flood is over when less than this is held.
constexpr int64_t kLittle = MemoryBudget::kMuch / 2;
// Otherwise. Each thread's part of the heap keeps what a burst of large messages left, and there are many.
constexpr Nanos kIdlePeriod = std::chrono::seconds(20);
// As much free memory stays, for the next burst.
constexpr size_t kKeptFree = 32u << 20;

#ifdef __GLIBC__
// The memory of the process that is in the machine's, and that nothing is in. Takes some 100 us.
size_t FreeResident() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  size_t pages = 0;
  const bool read = std::fscanf(file, "%*u %zu", &pages) == 1;
  std::fclose(file);
  const struct mallinfo2 heap = mallinfo2();
  const size_t resident = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)),
               used = heap.uordblks + heap.hblkhd;
  return read && resident > used ? resident - used : 0;
}

void GiveFreeMemoryBack(size_t kept) {
  if (FreeResident() > kept) malloc_trim(0);
}
#else
void GiveFreeMemoryBack(size_t) {}
#endif

}  // namespace

void Housekeeper::Start() { LookBy(Now() + kIdlePeriod); }

void Housekeeper::Rouse() {
  {
    MutexLock lock(mu_);
    roused_ = true;
  }
  LookBy(Now() + (parts_.budget.over() ? kShedPeriod : kLookPeriod));
}

void Housekeeper::LookBy(TimePoint when) {
  MutexLock lock(mu_);
  if (when >= next_) return;
  next_ = when;
  parts_.clock->Arm(*this, when);
}

void Housekeeper::OnClock(TaskList* ready) {
  bool flooded = false;
  {
    MutexLock lock(mu_);
    next_ = TimePoint::max();
    std::swap(flooded, roused_);
  }
  if (parts_.budget.over()) Shed(ready);
  if (parts_.budget.held() >= kLittle) return Rouse();
  GiveFreeMemoryBack(flooded ? 0 : kKeptFree);
  Start();
}

void Housekeeper::Shed(TaskList* ready) {
  std::vector<std::pair<size_t, std::shared_ptr<Connection>>> holders;
  for (auto& connection : parts_.connections.All()) {
    const size_t charged = static_cast<ServerConnection&>(*connection).charged();
    if (charged > parts_.budget.share()) holders.emplace_back(charged, std::move(connection));
  }
  std::sort(holders.begin(), holders.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  int64_t excess = parts_.budget.excess();
  for (const auto& [charged, connection] : holders) {
    if (excess <= 0) return;
    excess -= static_cast<int64_t>(charged);
    connection->Kick(Connection::kShed, ready);
  }
}

}  // namespace curtail::internal
