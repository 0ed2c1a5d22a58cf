// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/call/refusal.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "curtail/base/strings.h"
#include "curtail/rpc/call/call_metadata.h"
#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/context.h"

namespace curtail::internal {

std::vector<RefusalCount> RefusalCounters::Sample() const {
  constexpr std::array<std::string_view, kRefusals> kNames = {"waited too long",
                                                              "less important",
                                                              "deadline passed before it came",
                                                              "deadline passed before it began",
                                                              "call not made: its deadline had passed",
                                                              "no credit",
                                                              "call not made: no credit in time"};
  std::vector<RefusalCount> happened;
  for (size_t i = 0; i < kRefusals; ++i) {
    const uint64_t times = counts_[i].load(std::memory_order_relaxed);
    if (times > 0) happened.push_back({std::string(kNames[i]), times});
  }
  return happened;
}

void AskToRetryAfter(Nanos wait, Context* context) {
  constexpr int64_t kMost = 10'000;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
  context->AddTrailingMetadata(kPushbackKey, std::to_string(std::clamp<int64_t>(ms, 1, kMost)));
}

absl::Status OverdueError(Nanos waited, Context* context) {
  AskToRetryAfter(waited, context);
  return absl::ResourceExhaustedError(Join(
      "the server is overloaded: the request waited ",
      std::chrono::duration_cast<std::chrono::milliseconds>(waited).count(), " ms, and its queue stands"));
}

absl::Status LessImportantError(Priority priority, Context* context) {
  AskToRetryAfter(std::chrono::seconds(1), context);
  return absl::ResourceExhaustedError(Join("the server is overloaded, and the request's priority, ",
                                           ToString(priority),
                                           ", is less important than what it admits (curtail-priority)"));
}

absl::Status NoCreditError(Nanos target, Context* context) {
  AskToRetryAfter(target, context);
  return absl::ResourceExhaustedError(
      "the server is overloaded, and its client has no credit for the request");
}

absl::Status LateCallError(const Context& context, size_t calls) {
  if (context.refusals() != nullptr) context.refusals()->Count(Refusal::kCallTooLate, calls);
  return DeadlinePassed("before the call");
}

}  // namespace curtail::internal
