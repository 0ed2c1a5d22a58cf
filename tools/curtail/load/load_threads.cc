// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/load_threads.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <utility>

namespace curtail::tool {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kBetweenSums = std::chrono::milliseconds(50);

void ShowSums(const std::deque<Live>& lives, Live* shown) {
  int64_t elapsed = 0, p50 = 0, p99 = 0;
  uint64_t sent = 0, ok = 0, failed = 0, in_flight = 0;
  double due_per_s = 0, sent_per_s = 0;
  for (const Live& live : lives) {
    elapsed = std::max(elapsed, live.elapsed_ns.load(kRelaxed));
    p50 = std::max(p50, live.p50_ns.load(kRelaxed));
    p99 = std::max(p99, live.p99_ns.load(kRelaxed));
    sent += live.sent.load(kRelaxed);
    ok += live.ok.load(kRelaxed);
    failed += live.failed.load(kRelaxed);
    in_flight += live.in_flight.load(kRelaxed);
    due_per_s += live.due_per_s.load(kRelaxed);
    sent_per_s += live.sent_per_s.load(kRelaxed);
  }
  shown->elapsed_ns.store(elapsed, kRelaxed);
  shown->p50_ns.store(p50, kRelaxed);
  shown->p99_ns.store(p99, kRelaxed);
  shown->sent.store(sent, kRelaxed);
  shown->ok.store(ok, kRelaxed);
  shown->failed.store(failed, kRelaxed);
  shown->in_flight.store(in_flight, kRelaxed);
  shown->due_per_s.store(due_per_s, kRelaxed);
  shown->sent_per_s.store(sent_per_s, kRelaxed);
}

}  // namespace

absl::StatusOr<std::vector<LoadResult>> RunThreads(
    int threads, const std::function<absl::StatusOr<LoadResult>(int thread, Live* live)>& run, Live* shown) {
  std::deque<Live> lives(static_cast<size_t>(threads));
  std::vector<std::future<absl::StatusOr<LoadResult>>> runs;
  for (int thread = 0; thread < threads; ++thread) {
    Live* const live = &lives[static_cast<size_t>(thread)];
    runs.push_back(std::async(std::launch::async, [&run, thread, live] { return run(thread, live); }));
  }
  std::vector<LoadResult> results;
  absl::Status first;
  for (auto& each : runs) {
    while (each.wait_for(kBetweenSums) != std::future_status::ready) ShowSums(lives, shown);
    absl::StatusOr<LoadResult> result = each.get();
    if (result.ok()) results.push_back(*std::move(result));
    else first.Update(result.status());
  }
  ShowSums(lives, shown);
  if (!first.ok()) return first;
  return results;
}

}  // namespace curtail::tool
