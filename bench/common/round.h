// SPDX-License-Identifier: Apache-2.0
//
// round.h - the order in which a benchmark measures: in a round every subject has its turn at the first load, then every
// subject at the second, and so on, so that what disturbs the machine for some seconds disturbs neighbours alike.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace curtail::bench {

// Which subject begins.
enum class Order {
  kSame,           // the first, always
  kRotateByRound,  // the next one in each round
  kRotate,         // the next one at each load and in each round
};

struct RoundPlan {
  int rounds = 1;
  size_t loads = 1;
  size_t subjects = 1;
  Order order = Order::kSame;
  const std::atomic<bool>* stop = nullptr;  // may be null; once set, no further turn begins
};

struct Turn {
  int round = 0;
  size_t load = 0;
  size_t subject = 0;
};

// Calls `take` for each turn. Ends at the first that fails, and returns its status; CANCELLED when stopped, before or
// within a turn: what was measured until then stays.
absl::Status RunRounds(const RoundPlan& plan, const std::function<absl::Status(const Turn&)>& take);

// "round 2/5  ", for lines about progress.
std::string RoundText(const RoundPlan& plan, const Turn& turn);

}  // namespace curtail::bench
