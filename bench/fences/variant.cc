// SPDX-License-Identifier: Apache-2.0
#include "bench/fences/variant.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace curtail::fences {
namespace {

constexpr std::string_view kQueue = "queue";
constexpr std::string_view kCodel = "codel";
constexpr std::string_view kLifo = "lifo";
constexpr std::string_view kPriorities = "priorities";
constexpr std::string_view kCredits = "credits";
constexpr std::string_view kDeadline = "deadline";
// Some requests of 20 ms each, as docs/design/overload.md advises.
constexpr Nanos kShedTarget = std::chrono::milliseconds(50);
// Shorter than a server's default: a control that lets 5 % less in with each window is to settle within a run.
constexpr Nanos kPriorityWindow = std::chrono::milliseconds(50);

absl::Status Add(std::string_view guard, Variant* variant) {
  if (const std::optional<FenceMode> mode = ParseFenceMode(guard); mode && *mode != FenceMode::kOff) {
    variant->fence = *mode;
    return absl::OkStatus();
  }
  if (guard == kCodel || guard == kLifo) {
    if (guard == kCodel) variant->queue.shed = ShedMode::kCodel;
    if (guard == kLifo) variant->queue.mode = QueueMode::kLifo;
    variant->queue.target = kShedTarget;
    return absl::OkStatus();
  }
  if (guard == kPriorities) {
    variant->priorities = {.on = true, .target = kShedTarget, .window = kPriorityWindow};
    return absl::OkStatus();
  }
  if (guard == kCredits) {
    variant->admission = {.mode = AdmissionMode::kCredits, .target = kShedTarget};
    return absl::OkStatus();
  }
  if (guard == kDeadline) {
    variant->deadline = true;
    return absl::OkStatus();
  }
  size_t length = 0;
  if (guard.starts_with(kQueue) && absl::SimpleAtoi(std::string(guard.substr(kQueue.size())), &length) &&
      length > 0) {
    variant->max_queue = length;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", std::string(guard),
      "\" is none of dry-run, strict, borrow, queueN, codel, lifo, priorities, credits and deadline"));
}

}  // namespace

absl::StatusOr<Variant> Variant::Parse(std::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(std::string(text), '+');
  const absl::StatusOr<Config> config = Config::Parse(words.front());
  if (!config.ok()) return config.status();
  Variant variant{.config = *config};
  for (size_t i = 1; i < words.size(); ++i) {
    if (absl::Status added = Add(words[i], &variant); !added.ok()) return added;
  }
  return variant;
}

std::string Variant::name() const {
  std::string text = config.ToString();
  if (fence != FenceMode::kOff) absl::StrAppend(&text, "+", std::string(FenceModeName(fence)));
  if (max_queue) absl::StrAppend(&text, "+", std::string(kQueue), *max_queue);
  if (queue.shed != ShedMode::kOff) absl::StrAppend(&text, "+", std::string(kCodel));
  if (queue.mode != QueueMode::kFifo) absl::StrAppend(&text, "+", std::string(kLifo));
  if (priorities.on) absl::StrAppend(&text, "+", std::string(kPriorities));
  if (admission.credits()) absl::StrAppend(&text, "+", std::string(kCredits));
  if (deadline) absl::StrAppend(&text, "+", std::string(kDeadline));
  return text;
}

ServerOptions Variant::Options() const {
  ServerOptions options;
  options.config = config;
  options.max_threads = std::max(1, config.threads());
  options.fence.mode = fence;
  options.queue = queue;
  options.priorities = priorities;
  options.admission = admission;
  if (max_queue) options.max_queue = *max_queue;
  return options;
}

absl::StatusOr<std::vector<Variant>> ParseVariants(std::string_view text) {
  std::vector<Variant> variants;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(std::string(text), ','))) {
    absl::StatusOr<Variant> variant = Variant::Parse(word);
    if (!variant.ok()) return variant.status();
    variants.push_back(*std::move(variant));
  }
  return variants;
}

}  // namespace curtail::fences
