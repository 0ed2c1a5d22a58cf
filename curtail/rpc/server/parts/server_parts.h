// SPDX-License-Identifier: Apache-2.0
//
// server_parts.h - what the connections and calls of a server use of it.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/base/cpus.h"
#include "curtail/exec/internal/priority_limit.h"
#include "curtail/fence/credit_pool.h"
#include "curtail/rpc/call/incoming_interception.h"
#include "curtail/rpc/call/memory_budget.h"
#include "curtail/rpc/call/observed_call.h"
#include "curtail/rpc/call/refusal.h"
#include "curtail/rpc/call/server_fence.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/server/parts/connection_set.h"
#include "curtail/rpc/server/parts/limit_counters.h"
#include "curtail/rpc/server/parts/method_table.h"
#include "curtail/rpc/server/parts/reply_output.h"
#include "curtail/rpc/server/parts/request_places.h"
#include "curtail/rpc/server/parts/timer_clock.h"
#include "curtail/wire/session.h"

namespace curtail::internal {

// ServerParts outlive the connections and calls that refer to them. Each part says which threads may use it.
struct ServerParts {
  // The bytes that a connection may hold of requests that are unfinished, or that run. One message may be longer.
  static constexpr size_t kConnectionBytes = 16u << 20;
  // It may have so much inflated at a stretch, 1 or 2 ms of work, before it rests (kInflateRest).
  static constexpr size_t kInflateBytes = 512u << 10;

  explicit ServerParts(const ServerOptions& options)
      : default_timeout(options.default_timeout),
        handshake_timeout(options.handshake_timeout),
        idle_timeout(options.idle_timeout),
        max_age(options.max_connection_age),
        age_grace(options.max_connection_age_grace),
        write_timeout(options.write_timeout),
        admission_target(options.admission.target),
        forward_metadata(Forwarded(options)),
        interceptors(options.interceptors),
        budget(options.max_held_bytes),
        places(options.max_queue, options.max_queue_bytes),
        connections(static_cast<size_t>(options.max_connections)) {
    if (options.fence.mode != FenceMode::kOff)
      fence = std::make_unique<ServerFence>(options.fence, options.queue);
    if (options.priorities.on) priorities = std::make_unique<PriorityLimit>(options.priorities);
    if (options.admission.credits()) {
      credits = std::make_unique<CreditPool>(options.admission, static_cast<unsigned>(UsableCpus()));
    }
    session.max_message_bytes = options.max_message_bytes;
    session.max_partial_bytes = kConnectionBytes;
    session.inflate_bytes = kInflateBytes;
  }

  static std::vector<std::string> Forwarded(const ServerOptions& options) {
    std::vector<std::string> keys = options.forward_metadata;
    if (options.priorities.on) keys.emplace_back(kPriorityKey);
    return keys;
  }

  // Immutable once the server runs.
  const Nanos default_timeout;  // of requests that bring none
  const Nanos handshake_timeout;
  const Nanos idle_timeout;
  const Nanos max_age;    // of connections; zero: none
  const Nanos age_grace;  // zero: without end
  const Nanos write_timeout;
  const Nanos admission_target;                     // of the wait in the queue; with credits
  const std::vector<std::string> forward_metadata;  // keys that child calls carry on
  const ServerInterceptors interceptors;
  wire::SessionOptions session;
  MethodTable methods;
  CallObservers observers;
  LimitCounters limits;
  RefusalCounters refusals;
  std::unique_ptr<ServerFence> fence;         // null: off
  std::unique_ptr<PriorityLimit> priorities;  // likewise
  std::unique_ptr<CreditPool> credits;        // likewise

  // Connections keep the clock alive.
  const std::shared_ptr<TimerClock> clock = std::make_shared<TimerClock>();
  MemoryBudget budget;
  RequestPlaces places;
  ReplyOutput output;
  ConnectionSet connections;
  // Atomic, relaxed: numbers of connections (Task::flow).
  std::atomic<uint32_t> next_flow{0};
  // Atomic, relaxed: connections that rest because they have inflated their share.
  std::atomic<int> resting{0};
};

}  // namespace curtail::internal
