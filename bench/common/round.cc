// SPDX-License-Identifier: Apache-2.0
#include "bench/common/round.h"

#include "absl/strings/str_cat.h"

namespace curtail::bench {
namespace {

size_t FirstSubject(Order order, int round, size_t load) {
  switch (order) {
    case Order::kSame:
      break;
    case Order::kRotateByRound:
      return static_cast<size_t>(round);
    case Order::kRotate:
      return static_cast<size_t>(round) + load;
  }
  return 0;
}

}  // namespace

absl::Status RunRounds(const RoundPlan& plan, const std::function<absl::Status(const Turn&)>& take) {
  const auto stopped = [&plan] { return plan.stop != nullptr && *plan.stop; };
  for (int round = 0; round < plan.rounds; ++round) {
    for (size_t load = 0; load < plan.loads; ++load) {
      const size_t first = FirstSubject(plan.order, round, load);
      for (size_t i = 0; i < plan.subjects; ++i) {
        if (stopped()) return absl::CancelledError("interrupted");
        absl::Status status = take({round, load, (first + i) % plan.subjects});
        if (stopped()) return absl::CancelledError("interrupted");
        if (!status.ok()) return status;
      }
    }
  }
  return absl::OkStatus();
}

std::string RoundText(const RoundPlan& plan, const Turn& turn) {
  return absl::StrCat("round ", turn.round + 1, "/", plan.rounds, "  ");
}

}  // namespace curtail::bench
