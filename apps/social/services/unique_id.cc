// SPDX-License-Identifier: Apache-2.0
//
// Unique ids, in the form of page.h. They ascend at one machine, and across
// machines as far as the clocks agree. Twitter's Snowflake has the same form.
#include <algorithm>
#include <atomic>
#include <chrono>

#include "apps/social/page.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"

namespace curtail::social {

// 2024-01-01, so that the bits last until 2093.
constexpr int64_t kIdEpochMs = 1'704'067'200'000;

struct UniqueIdService final : UniqueId::Service {
  explicit UniqueIdService(uint64_t m) : Service(/*never_waits=*/true), machine(m) {}

  absl::Status Next(Context&, const IdCount& request, Ids* reply) override {
    const uint32_t count = request.count();
    if (count < 1 || count > 1000) return absl::InvalidArgumentError("1 to 1000 ids may be asked for");
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count() - kIdEpochMs;
    const uint64_t earliest = static_cast<uint64_t>(ms) << kCounterBits;
    // A clock that was put back, or more ids than a millisecond has, only move the counter on.
    uint64_t last = next.load(std::memory_order_relaxed), first = 0;
    do {
      first = std::max(last, earliest);
    } while (!next.compare_exchange_weak(last, first + count, std::memory_order_relaxed));
    for (uint64_t tick = first; tick < first + count; ++tick) {
      const uint64_t low = tick & ((1u << kCounterBits) - 1);
      reply->add_ids(((tick >> kCounterBits) << kMachineBits | machine) << kCounterBits | low);
    }
    return absl::OkStatus();
  }

  const uint64_t machine;
  // Atomic: milliseconds and counter of the next id. Relaxed, it orders nothing else.
  std::atomic<uint64_t> next{0};
};

HostedService HostedUniqueId() {
  auto machine = std::make_shared<uint32_t>(0);
  return {.name = "unique-id",
          .flags =
              [machine](Flags& flags) {
                flags.Add("--machine", machine.get(), "unique-id: the first instance's number", {0, 1023});
              },
          .make = [machine](Env& env) -> MadeService {
            const uint64_t number = *machine + env.shard().index;
            if (number >= 1u << kMachineBits) return absl::InvalidArgumentError("--machine: beyond 1023");
            return std::make_unique<UniqueIdService>(number);
          }};
}

}  // namespace curtail::social
