// SPDX-License-Identifier: Apache-2.0
//
// variant.h - one way to run the compose service: which `async` its handler calls, under which threading model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/exec/config.h"

namespace curtail::study {

enum class AsyncKind {
  kStd,      // std::async: a new thread for each call
  kCurtail,  // curtail::async: a fiber, or a parked thread of the pool
};

// A Variant is written "std-SDB1-64" or "curtail-FIB1".
struct Variant {
  AsyncKind async = AsyncKind::kStd;
  Config config;

  // Errors: INVALID_ARGUMENT that says what would be right.
  static absl::StatusOr<Variant> Parse(std::string_view text);
  std::string name() const;
  bool fibers() const { return config.model.waiting == Waiting::kFiber; }
  // How many threads the server starts: those of the config and, where calls run on parked threads, four for
  // each thread that runs handlers.
  int MaxThreads() const;
};

// Separated by commas. The first is the baseline. Errors: INVALID_ARGUMENT, for an empty list too.
absl::StatusOr<std::vector<Variant>> ParseVariants(std::string_view text);

}  // namespace curtail::study
