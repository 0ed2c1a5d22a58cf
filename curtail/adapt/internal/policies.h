// SPDX-License-Identifier: Apache-2.0
//
// policies.h - makes each policy; MakePolicy() has checked what they require.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/adapt/envelope.h"
#include "curtail/adapt/policy.h"

namespace curtail::internal {

// Which of the rates a profile is consulted with.
enum class RateSource { kSlow, kPaper, kWindow };

std::unique_ptr<Policy> MakeStatic(const Config& config);
// With kPaper and kWindow: the lowest prediction, at once.
std::unique_ptr<Policy> MakeMutune(Envelope envelope, RateSource source, const PolicyOptions& options);
// Errors: INVALID_ARGUMENT when the profile has no SDB or ADB config, as the style asks.
absl::StatusOr<std::unique_ptr<Policy>> MakeFm(const Profile& profile, const ConfigFilter& filter,
                                               const PolicyOptions& options);
// Toggles between the blocking and the polling form of `base`, a synchronous config.
std::unique_ptr<Policy> MakeIpi(const Config& base, int cpus);
// `configs` is not empty; the envelope, if there is one, is what to expect of them.
std::unique_ptr<Policy> MakeOnline(std::vector<Config> configs, std::optional<Envelope> expected,
                                   const PolicyOptions& options);

// Counts arrivals in windows of fixed length, one after the other from the first moment that it is told.
class FixedWindow {
 public:
  explicit FixedWindow(Nanos length) : length_(length > Nanos(0) ? length : Nanos(1)) {}

  // `arrivals` as Signals has them. The rate of the window that has ended since the last call; of several,
  // their mean; absent when none has.
  std::optional<double> Update(TimePoint now, uint64_t arrivals);

 private:
  const Nanos length_;
  bool begun_ = false;
  TimePoint start_{};
  uint64_t before_ = 0;  // arrivals before start_
};

// Threads that can hold a request of a synchronous config, each one at a time.
inline int HandlerThreads(const Config& config) {
  return config.model.execution == Execution::kInline ? config.network : config.workers;
}

}  // namespace curtail::internal
