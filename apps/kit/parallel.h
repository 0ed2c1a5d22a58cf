// SPDX-License-Identifier: Apache-2.0
//
// parallel.h - splits a pass over rows among threads, and says how far it is.
//
// For start-up, offline tools and threads of their own; nothing here runs on a thread that answers requests.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace curtail::apps {

// As many as a flag says; for 0, one for each CPU that this process may use.
int Threads(int flag);

// Calls body(begin, end) for consecutive parts of [begin, end), one a thread, and returns when all have
// returned: OK, or the first error in row order.
absl::Status ForRanges(size_t begin, size_t end, int threads,
                       const std::function<absl::Status(size_t begin, size_t end)>& body);

// A Progress counts rows, or what `unit` calls them, and, when a pass takes longer than a second, says so on stderr: a
// line that is rewritten on a terminal, one line at the end elsewhere. Add() may be called from any thread.
class Progress {
 public:
  // `quiet` prints nothing, whatever it takes.
  Progress(std::string what, size_t total, bool quiet, std::string unit = "rows");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Add(size_t rows);

 private:
  void Print(bool last) const;

  // Immutable after construction.
  const std::string what_;
  const size_t total_;
  const bool quiet_;
  const std::string unit_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_;
  // Atomic; statistics only, relaxed.
  std::atomic<size_t> done_{0};
  std::atomic<int64_t> next_print_ms_{1000};
};

}  // namespace curtail::apps
