// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/housekeeper.h"

#include <malloc.h>

#include <algorithm>
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

}  // namespace

void Housekeeper::Rouse() {
  parts_.clock->Arm(*this, Now() + (parts_.budget.over() ? kShedPeriod : kLookPeriod));
}

void Housekeeper::OnClock(TaskList* ready) {
  if (parts_.budget.over()) Shed(ready);
  if (parts_.budget.held() >= kLittle) return Rouse();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void Housekeeper::Shed(TaskList* ready) {
  std::vector<std::pair<size_t, std::shared_ptr<Connection>>> holders;
  for (auto& connection : parts_.connections.All()) {
    const size_t charged = static_cast<ServerConnection&>(*connection).charged();
    if (charged > MemoryBudget::kShare) holders.emplace_back(charged, std::move(connection));
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
