// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/status_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/fence/limiter/limiter.h"
#include "curtail/rpc/admin/admin.pb.h"

namespace curtail::tool {
namespace {

std::string Times(uint64_t count) { return count == 1 ? "once" : absl::StrCat(count, " times"); }

constexpr int kDecisions = 10;

int64_t AgoMs(const admin::v1::Decision& decision, const admin::v1::GetStatusReply& status) {
  return (status.now_ns() - decision.at_ns()) / 1'000'000;
}

// The policy's name, its view of the load, and its last switches; empty for a server without one.
std::string PolicyText(const admin::v1::GetStatusReply& status) {
  if (!status.has_policy()) return "";
  const admin::v1::Policy& policy = status.policy();
  std::string text = absl::StrFormat("policy %s", policy.name());
  if (policy.switches_by_itself()) {
    absl::StrAppendFormat(&text, ": %.0f requests/s (%.0f by the last few), switches: %d, failed: %d",
                          policy.rate_per_s(), policy.fast_rate_per_s(), policy.switches(),
                          policy.failures());
  }
  text += "\n";
  if (!policy.note().empty()) text += "  " + policy.note() + "\n";
  for (int i = std::max(0, policy.decisions_size() - kDecisions); i < policy.decisions_size(); ++i) {
    const admin::v1::Decision& decision = policy.decisions(i);
    absl::StrAppendFormat(&text, "  %10.3f s ago, at %.0f/s: %s -> %s (%s)",
                          static_cast<double>(AgoMs(decision, status)) / 1000, decision.rate_per_s(),
                          decision.from(), decision.to(), decision.reason());
    text += decision.failure().empty() ? "\n" : " failed: " + decision.failure() + "\n";
  }
  return text;
}

// A table of the path classes, and calls that were not declared; empty for a server without fences.
std::string FencesText(const admin::v1::GetStatusReply& status) {
  if (!status.has_fences()) return "";
  const admin::v1::Fences& fences = status.fences();
  const bool follows = !fences.limiter().empty() && fences.limiter() != kFixedLimit;
  const std::string limits = follows ? absl::StrCat(", limits follow ", fences.limiter()) : "";
  std::string text = absl::StrFormat("\nfences %s%s\n%8s %8s %8s %10s %10s %10s %10s %10s %10s %10s  %s\n",
                                     fences.mode(), limits, "permits", "in use", "waiting", "begun", "queued",
                                     "refused", "borrowed", "shed", "late", "no credit", "services");
  for (const admin::v1::FenceClass& c : fences.classes()) {
    absl::StrAppendFormat(&text, "%8s %8d %8d %10d %10d %10d %10d %10d %10d %10d  %s\n",
                          c.limit() == 0 ? "-" : absl::StrCat(c.limit()), c.in_use(), c.waiting(), c.begun(),
                          c.queued(), c.refused(), c.borrowed(), c.shed(), c.late(), c.no_credit(), c.name());
  }
  for (const admin::v1::UndeclaredCalls& calls : fences.undeclared()) {
    absl::StrAppendFormat(&text, "%s called %s, which it has not declared: %d undeclared calls\n",
                          calls.method(), calls.service(), calls.times());
  }
  return text;
}

}  // namespace

std::string StatusText(const admin::v1::GetStatusReply& status) {
  std::string text = absl::StrFormat("config %s\n%s\n%-10s %8s %8s %8s %8s\n", status.config(),
                                     PolicyText(status), "pool", "threads", "active", "waiting", "parked");
  for (const admin::v1::Pool& pool : status.pools()) {
    absl::StrAppendFormat(&text, "%-10s %8d %8d %8d %8d\n", pool.name(), pool.threads(), pool.active(),
                          pool.waiting(), pool.parked());
  }
  const double mean = status.begun() == 0
                          ? 0
                          : static_cast<double>(status.queue_wait_us()) / static_cast<double>(status.begun());
  const admin::v1::Process& process = status.process();
  absl::StrAppendFormat(
      &text,
      "\n%d spinning, %d without a role, %d fibers\n"
      "queue: %d now, %d requests taken so far after %.0f us each; the longest since the "
      "last look waited %d us\n"
      "%d connections, %d open calls, %d KiB held for them\n"
      "process: %d threads, %d voluntary and %d involuntary switches, %.1f s on CPUs, %.1f "
      "s ready without one\n",
      status.spinning_threads(), status.sleeping_threads(), status.fibers(), status.queued(), status.begun(),
      mean, status.max_queue_wait_us(), status.connections(), status.open_calls(), status.held_bytes() / 1024,
      process.threads(), process.voluntary_switches(), process.involuntary_switches(),
      static_cast<double>(process.cpu_us()) / 1e6, static_cast<double>(process.run_delay_us()) / 1e6);
  for (const admin::v1::Store& store : status.stores()) {
    absl::StrAppendFormat(&text, "store %s: %s, %d connections, %d lost, %d of %d attempts failed\n",
                          store.name(), store.up() ? "up" : "DOWN", store.connections(), store.lost(),
                          store.failures(), store.attempts());
  }
  for (const admin::v1::HeldUpMethod& method : status.held_up()) {
    absl::StrAppendFormat(
        &text, "%s held a thread up, %s%s\n", method.path(), Times(method.times()),
        method.blocks() ? ": it sleeps, so that each of its calls has a thread of its own" : "");
  }
  for (const admin::v1::LimitCount& limit : status.limits()) {
    absl::StrAppendFormat(&text, "limit %s: reached %s by clients\n", limit.name(), Times(limit.times()));
  }
  for (const admin::v1::RefusalCount& refusal : status.refusals()) {
    absl::StrAppendFormat(&text, "overload: %s, %s\n", refusal.reason(), Times(refusal.times()));
  }
  if (status.has_credits()) {
    absl::StrAppendFormat(&text, "credits: %d, of which %d connections have %d\n", status.credits().total(),
                          status.credits().accounts(), status.credits().issued());
  }
  return text + FencesText(status);
}

std::vector<std::string> BlockingNotes(const admin::v1::GetStatusReply& status, const Config& config) {
  std::vector<std::string> notes;
  if (config == Config::Auto()) return notes;
  const int threads = config.workers > 0 ? config.workers : config.network;  // that run handlers
  for (const admin::v1::HeldUpMethod& method : status.held_up()) {
    if (!method.blocks()) continue;
    notes.push_back(absl::StrFormat(
        "%s sleeps outside of curtail's waits, so the %d thread%s of %s answer%s no more of its "
        "calls at a time; under auto each call has a thread of its own",
        method.path(), threads, threads == 1 ? "" : "s", config.ToString(), threads == 1 ? "s" : ""));
  }
  return notes;
}

}  // namespace curtail::tool
