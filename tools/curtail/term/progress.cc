// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/term/progress.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "curtail/base/boundary.h"

namespace curtail::tool {
namespace {

// Often enough for the eye; more would take CPU from the run.
constexpr auto kRedraw = std::chrono::milliseconds(250);

double Ms(const std::atomic<int64_t>& ns) {
  return static_cast<double>(ns.load(std::memory_order_relaxed)) / 1e6;
}

// Rates and percentiles are those of the last second.
std::string LiveLine(const Live& live, const std::string& label, Nanos total) {
  const std::string of =
      total > Nanos::zero() ? absl::StrFormat("/%.0f", static_cast<double>(total.count()) / 1e9) : "";
  return absl::StrFormat(
      "%s  %.0f%s s  due %.0f/s  sent %.0f/s  %d in flight  p50 %.2f ms  p99 %.2f ms  %d failed", label,
      Ms(live.elapsed_ns) / 1e3, of, live.due_per_s.load(std::memory_order_relaxed),
      live.sent_per_s.load(std::memory_order_relaxed), live.in_flight.load(std::memory_order_relaxed),
      Ms(live.p50_ns), Ms(live.p99_ns), live.failed.load(std::memory_order_relaxed));
}

}  // namespace

ProgressLine::ProgressLine(Console* console, const Live* live, std::string label, Nanos total,
                           std::function<std::string()> note)
    : console_(console), live_(live), label_(std::move(label)), total_(total), note_(std::move(note)) {
  if (console_->shows_progress()) thread_ = std::thread([this] { Draw(); });
}

ProgressLine::~ProgressLine() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mu_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
  console_->Progress({});
}

void ProgressLine::Draw() {
  std::unique_lock lock(mu_);
  while (!changed_.wait_for(lock, kRedraw, [this] { return done_; })) {
    Contain("progress",
            [this] { console_->Progress(LiveLine(*live_, label_, total_) + (note_ ? "  " + note_() : "")); });
  }
}

}  // namespace curtail::tool
