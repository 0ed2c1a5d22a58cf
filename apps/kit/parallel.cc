// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/parallel.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "curtail/base/boundary.h"
#include "curtail/base/cpus.h"
#include "curtail/base/log.h"

namespace curtail::apps {

int Threads(int flag) { return flag > 0 ? flag : UsableCpus(); }

absl::Status ForRanges(size_t begin, size_t end, int threads,
                       const std::function<absl::Status(size_t begin, size_t end)>& body) {
  const size_t rows = end - begin;
  const size_t parts =
      std::clamp<size_t>(static_cast<size_t>(std::max(threads, 1)), 1, std::max<size_t>(rows, 1));
  std::vector<absl::Status> statuses(parts);
  auto run = [&](size_t part) {
    statuses[part] = absl::InternalError("an exception ended a part of the work");
    Contain("a part of the work",
            [&] { statuses[part] = body(begin + rows * part / parts, begin + rows * (part + 1) / parts); });
  };
  std::vector<std::jthread> helpers;
  helpers.reserve(parts);
  // If the system makes no more threads, this one does their parts.
  Contain("a thread's start", [&] {
    while (helpers.size() + 1 < parts) helpers.emplace_back(run, helpers.size() + 1);
  });
  for (size_t part = helpers.size() + 1; part < parts; ++part) run(part);
  run(0);
  helpers.clear();
  for (absl::Status& status : statuses) {
    if (!status.ok()) return std::move(status);
  }
  return absl::OkStatus();
}

Progress::Progress(std::string what, size_t total, bool quiet, std::string unit)
    : what_(std::move(what)),
      total_(total),
      quiet_(quiet),
      unit_(std::move(unit)),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  const auto took = std::chrono::steady_clock::now() - start_;
  if (!quiet_ && took > std::chrono::seconds(1)) Print(/*last=*/true);
}

void Progress::Add(size_t rows) {
  done_.fetch_add(rows, std::memory_order_relaxed);
  if (quiet_ || !terminal_) return;
  const auto took = std::chrono::steady_clock::now() - start_;
  const int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
  int64_t due = next_print_ms_.load(std::memory_order_relaxed);
  if (ms < due || !next_print_ms_.compare_exchange_strong(due, ms + 200, std::memory_order_relaxed)) return;
  Print(/*last=*/false);
}

void Progress::Print(bool last) const {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
  const size_t done = done_.load(std::memory_order_relaxed);
  const std::string text =
      absl::StrFormat("%s: %d of %d %s, %.1f s", what_, done, total_, unit_, took.count());
  if (!terminal_) return Log(Severity::kInfo, text, {{"done", done}, {"total", total_}}, /*from=*/"");
  std::fprintf(stderr, "\r%s%s", text.c_str(), last ? "\n" : "");
}

}  // namespace curtail::apps
