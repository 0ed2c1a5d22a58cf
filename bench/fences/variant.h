// SPDX-License-Identifier: Apache-2.0
//
// variant.h - one way to run the shared service: its threading model, and what guards it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/exec/config.h"
#include "curtail/exec/priority.h"
#include "curtail/exec/queue_options.h"
#include "curtail/fence/fence.h"
#include "curtail/rpc/server.h"

namespace curtail::fences {

// A Variant is written "SDB1-16", "SDB1-16+strict", "FIB1+borrow", "SDB1-16+queue64+codel+lifo+priorities+credits+deadline".
struct Variant {
  Config config;
  FenceMode fence = FenceMode::kOff;
  std::optional<size_t> max_queue;
  QueueOptions queue;
  PriorityOptions priorities;
  AdmissionOptions admission;  // with credits the client waits for them, too
  bool deadline = false;       // requests have a short one; the client's part

  // Errors: INVALID_ARGUMENT that says what would be right.
  static absl::StatusOr<Variant> Parse(std::string_view text);
  std::string name() const;
  bool fenced() const { return fence == FenceMode::kStrict || fence == FenceMode::kBorrow; }
  // True if requests that wait for other services hold no thread.
  bool holds_no_thread() const { return config.model.waiting != Waiting::kSync; }
  ServerOptions Options() const;
};

// Separated by commas. The first is the baseline. Errors: INVALID_ARGUMENT, for an empty list too.
absl::StatusOr<std::vector<Variant>> ParseVariants(std::string_view text);

}  // namespace curtail::fences
