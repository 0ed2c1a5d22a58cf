// SPDX-License-Identifier: Apache-2.0
//
// learned.h - models of whom users follow and which ads they click: trained from what happened, pure and repeatable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/kit/logistic.h"
#include "models.pb.h"

namespace curtail::social {

// Who follows whom, by id.
using FollowOf = std::pair<uint64_t, uint64_t>;

struct FollowTraining {
  uint32_t rank = 16;
  uint32_t iterations = 10;
  // Weight of the squared factors, for each pair that a user has. Raise it when chance looks like taste.
  double regularization = 0.1;
  // Pairs that do not follow, drawn for each that does.
  uint32_t others = 3;
  uint64_t seed = 1;
  int threads = 1;
};

// Alternating least squares over follows, which count 1, and drawn pairs that do not follow, which count 0.
// Errors: INVALID_ARGUMENT (an option; fewer than two users).
[[nodiscard]] absl::StatusOr<FollowModel> TrainFollows(std::span<const FollowOf> follows,
                                                       const FollowTraining& training);
// How often a model ranks a follow that it has not seen above a pair that does not follow: trains on nine tenths.
// 0.5 is chance. Errors: those of TrainFollows().
[[nodiscard]] absl::StatusOr<double> HeldOutRank(std::span<const FollowOf> follows,
                                                 const FollowTraining& training);
// At most `count` other users, the best first; of users that the model does not know it says who is popular.
std::vector<uint64_t> BestFor(const FollowModel& model, uint64_t user, size_t count);
// DATA_LOSS unless the parts fit each other.
[[nodiscard]] absl::Status Check(const FollowModel& model);

// The features of an ad that a user sees, as places in AdsModel::weights.
using AdFeatures = std::array<uint32_t, 4>;
inline constexpr uint32_t kAdWeights = 1 << 16;
AdFeatures FeaturesOf(uint64_t user, uint64_t ad, std::string_view topic);

// How often an ad was shown to a user, and clicked.
struct AdShown {
  AdFeatures features;
  uint32_t shown = 0, clicked = 0;
};
using AdTraining = apps::LogisticTraining;
AdsModel TrainAds(std::span<const AdShown> shown, const AdTraining& training);
// That a click follows. REQUIRES: Check() is OK.
double ClickProbability(const AdsModel& model, const AdFeatures& features);
// Mean negative log likelihood of a showing.
double LogLoss(const AdsModel& model, std::span<const AdShown> shown);
[[nodiscard]] absl::Status Check(const AdsModel& model);

}  // namespace curtail::social
