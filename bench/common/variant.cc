// SPDX-License-Identifier: Apache-2.0
#include "bench/common/variant.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace curtail::bench {
namespace {

constexpr absl::string_view kStdPrefix = "std-";
constexpr absl::string_view kCurtailPrefix = "curtail-";
constexpr absl::string_view kQueue = "queue";
// Some requests of 20 ms each, as docs/design/overload.md advises.
constexpr Nanos kShedTarget = std::chrono::milliseconds(50);
// Shorter than a server's default: a control that lets 5 % less in with each window is to settle within a run.
constexpr Nanos kPriorityWindow = std::chrono::milliseconds(50);

struct Guard {
  const char* name;
  void (*add)(Variant* variant);
  bool (*has)(const Variant& variant);
};
// Those but for fences and queueN, in the order in which they are written.
constexpr Guard kGuards[] = {
    {"codel", [](Variant* v) { v->queue.shed = ShedMode::kCodel, v->queue.target = kShedTarget; },
     [](const Variant& v) { return v.queue.shed != ShedMode::kOff; }},
    {"lifo", [](Variant* v) { v->queue.mode = QueueMode::kLifo, v->queue.target = kShedTarget; },
     [](const Variant& v) { return v.queue.mode != QueueMode::kFifo; }},
    {"priorities",
     [](Variant* v) { v->priorities = {.on = true, .target = kShedTarget, .window = kPriorityWindow}; },
     [](const Variant& v) { return v.priorities.on; }},
    {"credits", [](Variant* v) { v->admission = {.mode = AdmissionMode::kCredits, .target = kShedTarget}; },
     [](const Variant& v) { return v.admission.credits(); }},
    {"deadline", [](Variant* v) { v->deadline = true; }, [](const Variant& v) { return v.deadline; }}};

absl::Status Add(absl::string_view guard, Variant* variant) {
  if (const std::optional<FenceMode> mode = ParseFenceMode(std::string(guard));
      mode && *mode != FenceMode::kOff) {
    variant->fence = *mode;
    return absl::OkStatus();
  }
  for (const Guard& one : kGuards) {
    if (guard == one.name) return one.add(variant), absl::OkStatus();
  }
  size_t length = 0;
  absl::string_view number = guard;
  if (absl::ConsumePrefix(&number, kQueue) && absl::SimpleAtoi(number, &length) && length > 0) {
    variant->max_queue = length;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", guard,
      "\" is not one of on, strict, dry-run, queueN, codel, lifo, priorities, credits and deadline"));
}

// Why handlers that call `async` cannot run so; empty if they can.
absl::string_view WhyNoAsync(const Variant& variant) {
  if (variant.async == AsyncKind::kNone) return "";
  if (variant.config.model.waiting == Waiting::kAsync)
    return "the handler waits, which asynchronous models have no thread for";
  const bool blocks_fibers = variant.async == AsyncKind::kStd && variant.fibers();
  return blocks_fibers ? "std::future::get() would hold up all fibers of its thread" : "";
}

}  // namespace

absl::StatusOr<Variant> Variant::Parse(absl::string_view text) {
  Variant variant;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, kStdPrefix)) variant.async = AsyncKind::kStd;
  if (absl::ConsumePrefix(&rest, kCurtailPrefix)) variant.async = AsyncKind::kCurtail;
  const std::vector<absl::string_view> words = absl::StrSplit(rest, '+');
  const absl::StatusOr<Config> config = Config::Parse(std::string(words.front()));
  if (!config.ok()) return config.status();
  variant.config = *config;
  for (size_t i = 1; i < words.size(); ++i) {
    if (absl::Status added = Add(words[i], &variant); !added.ok()) return added;
  }
  if (const absl::string_view why = WhyNoAsync(variant); !why.empty())
    return absl::InvalidArgumentError(absl::StrCat(text, ": ", why));
  return variant;
}

std::string Variant::name() const {
  std::string text = config.ToString();
  if (async != AsyncKind::kNone)
    text = absl::StrCat(async == AsyncKind::kStd ? kStdPrefix : kCurtailPrefix, text);
  if (fence != FenceMode::kOff) absl::StrAppend(&text, "+", std::string(FenceModeName(fence)));
  if (max_queue) absl::StrAppend(&text, "+", kQueue, *max_queue);
  for (const Guard& guard : kGuards) {
    if (guard.has(*this)) absl::StrAppend(&text, "+", guard.name);
  }
  return text;
}

ServerOptions Variant::Options(int parallel_calls) const {
  ServerOptions options;
  options.config = config;
  const bool dispatch = config.model.execution == Execution::kDispatch;
  const bool parked = async == AsyncKind::kCurtail && !fibers();
  const int runners = dispatch ? config.workers : config.network;
  options.max_threads = std::max(1, config.threads() + (parked ? parallel_calls * runners : 0));
  options.fence.mode = fence;
  options.queue = queue;
  options.priorities = priorities;
  options.admission = admission;
  if (max_queue) options.max_queue = *max_queue;
  return options;
}

absl::StatusOr<std::vector<Variant>> ParseVariants(absl::string_view text, bool calls_async) {
  std::vector<Variant> variants;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    absl::StatusOr<Variant> variant = Variant::Parse(word);
    if (!variant.ok()) return variant.status();
    if ((variant->async != AsyncKind::kNone) != calls_async) {
      return absl::InvalidArgumentError(absl::StrCat(
          word, ": write ", calls_async ? "std-CONFIG or curtail-CONFIG" : "a config and its guards",
          ", as in ", calls_async ? "std-SDB1-64" : "SDB1-16+strict"));
    }
    variants.push_back(*std::move(variant));
  }
  return variants;
}

}  // namespace curtail::bench
