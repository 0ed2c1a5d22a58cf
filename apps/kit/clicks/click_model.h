// SPDX-License-Identifier: Apache-2.0
//
// click_model.h - which ads a user will click, learned from what was shown and clicked; pure and repeatable.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "apps/kit/logistic.h"
#include "click_model.pb.h"
#include "curtail/base/rng.h"

namespace curtail::apps {

// The features of an ad that a user sees, as places in ClickModel::weights.
using ClickFeatures = std::array<uint32_t, 4>;
inline constexpr uint32_t kClickWeights = 1 << 16;
ClickFeatures ClickFeaturesOf(uint64_t user, uint64_t ad, std::string_view topic);

// How often an ad was shown to a user, and clicked.
struct AdShown {
  ClickFeatures features;
  uint32_t shown = 0, clicked = 0;
};

ClickModel TrainClicks(std::span<const AdShown> shown, const LogisticTraining& training);
// Returns the probability of a click. REQUIRES: Check() is OK.
double ClickProbability(const ClickModel& model, const ClickFeatures& features);
// Returns the mean negative log likelihood of a showing.
double LogLoss(const ClickModel& model, std::span<const AdShown> shown);
// The LogLoss() of a tenth of what was shown that was held out, by a model of the rest, and by the rest's rate of clicks alone.
struct HeldOutLoss {
  uint64_t showings = 0;  // of that tenth; 0: both losses are 0
  double by_model = 0, by_rate = 0;
};
HeldOutLoss LossOfHeldOut(std::span<const AdShown> shown, const LogisticTraining& training);
// DATA_LOSS for a message that is not such a model.
[[nodiscard]] absl::Status Check(const ClickModel& model);

// Leaves `limit` ads, the likeliest first, of equal ones the newer. `draw` draws the last of several, so that users see every ad now
// and then. An `Ad` has a `probability` and an `id`.
template <class Ad>
void ChooseAds(size_t limit, uint64_t draw, std::vector<Ad>* ads) {
  std::ranges::sort(*ads, [](const Ad& a, const Ad& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.id > b.id;
  });
  if (ads->size() <= limit) return;
  Rng rng(draw);
  if (limit > 1) std::swap((*ads)[limit - 1], (*ads)[limit - 1 + rng.Below(ads->size() - limit + 1)]);
  ads->resize(limit);
}

}  // namespace curtail::apps
