// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/clicks/click_model.h"
#include "curtail/base/mix.h"

#include <cmath>

namespace curtail::apps {

ClickFeatures ClickFeaturesOf(uint64_t user, uint64_t ad, std::string_view topic) {
  uint64_t word = 1;
  for (const char c : topic) word = Mix(word, static_cast<unsigned char>(c));
  // The first weight is everybody's.
  const auto place = [](uint64_t hash) { return 1 + static_cast<uint32_t>(hash % (kClickWeights - 1)); };
  return {0, place(Mix(1, ad)), place(Mix(2, word)), place(Mix(Mix(3, user), word))};
}

ClickModel TrainClicks(std::span<const AdShown> shown, const LogisticTraining& training) {
  std::vector<LogisticCases> cases;
  for (const AdShown& one : shown) cases.push_back({one.features, one.shown, one.clicked});
  const std::vector<double> weights = TrainLogistic(cases, kClickWeights, training);
  ClickModel model;
  model.mutable_weights()->Assign(weights.begin(), weights.end());
  return model;
}

double ClickProbability(const ClickModel& model, const ClickFeatures& features) {
  double sum = 0;
  for (const uint32_t place : features) sum += double{model.weights(static_cast<int>(place))};
  return Logistic(sum);
}

double LogLoss(const ClickModel& model, std::span<const AdShown> shown) {
  double loss = 0, all = 0;
  for (const AdShown& one : shown) {
    const double p = ClickProbability(model, one.features);
    loss -= one.clicked * std::log(p) + (one.shown - one.clicked) * std::log(1 - p);
    all += one.shown;
  }
  return all == 0 ? 0 : loss / all;
}

HeldOutLoss LossOfHeldOut(std::span<const AdShown> shown, const LogisticTraining& training) {
  std::vector<AdShown> seen, held_out;
  uint64_t judged = 0;
  double showings = 1, clicks = 0.5;  // no rate is 0 or 1
  for (size_t i = 0; i < shown.size(); ++i) {
    if (Mix(1, i) % 10 == 0) {
      held_out.push_back(shown[i]);
      judged += shown[i].shown;
      continue;
    }
    seen.push_back(shown[i]);
    showings += shown[i].shown, clicks += shown[i].clicked;
  }
  ClickModel rate;
  rate.mutable_weights()->Resize(kClickWeights, 0);
  rate.set_weights(0, static_cast<float>(std::log(clicks / (showings - clicks))));
  return {judged, LogLoss(TrainClicks(seen, training), held_out), LogLoss(rate, held_out)};
}

absl::Status Check(const ClickModel& model) {
  return model.weights_size() == kClickWeights ? absl::OkStatus()
                                               : absl::DataLossError("no model of ads: train again");
}

}  // namespace curtail::apps
