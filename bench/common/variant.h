// SPDX-License-Identifier: Apache-2.0
//
// variant.h - one way to run a service under study: its threading model, what guards it, and which `async` its handlers
// call.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "curtail/exec/config.h"
#include "curtail/exec/priority.h"
#include "curtail/exec/queue_options.h"
#include "curtail/fence/fence.h"
#include "curtail/rpc/server.h"

namespace curtail::bench {

enum class AsyncKind {
  kNone,     // the handlers call none
  kStd,      // std::async: a new thread for each call
  kCurtail,  // curtail::async: a fiber, or a parked thread of the pool
};

// A Variant is written [std-|curtail-]CONFIG[+GUARD...]: "curtail-FIB1", "SDB1-16+strict",
// "SDB1-16+queue64+codel+lifo+priorities+credits+deadline". Value type.
struct Variant {
  AsyncKind async = AsyncKind::kNone;
  Config config;
  FenceMode fence = FenceMode::kOff;
  std::optional<size_t> max_queue;
  QueueOptions queue;
  PriorityOptions priorities;
  AdmissionOptions admission;  // with credits the client waits for them, too
  bool deadline = false;       // requests have a short one; the client's part

  // Errors: INVALID_ARGUMENT that says what would be right.
  static absl::StatusOr<Variant> Parse(absl::string_view text);
  std::string name() const;
  bool fenced() const { return fence == FenceMode::kStrict || fence == FenceMode::kOn; }
  bool fibers() const { return config.model.waiting == Waiting::kFiber; }
  // True if requests that wait for other services hold no thread.
  bool holds_no_thread() const { return config.model.waiting != Waiting::kSync; }
  // Where calls run on parked threads, `parallel_calls` of them for each thread that runs handlers come on top of the
  // config's.
  ServerOptions Options(int parallel_calls = 0) const;
};

// Separated by commas. The first is the baseline. `calls_async`: all must say which `async` they call, or none may.
// Errors: INVALID_ARGUMENT, for an empty list too.
absl::StatusOr<std::vector<Variant>> ParseVariants(absl::string_view text, bool calls_async);

}  // namespace curtail::bench
