// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/config/balancer_config.h"

namespace curtail::internal {
namespace {

constexpr size_t kMostRingPlaces = 1u << 16;
constexpr std::string_view kOutlierDetection = "outlier_detection_experimental";

// Reads a whole number of some type.
template <class T>
std::function<absl::Status(const Field&)> Number(T* value, uint64_t least, uint64_t most) {
  return [=](const Field& field) {
    uint64_t number = 0;
    absl::Status read = field.Whole(least, most, &number);
    *value = static_cast<T>(number);
    return read;
  };
}

absl::Status ReadWeights(const Field& field, WeightOptions* weights) {
  Nanos period{0};  // of reports that are not asked for
  const auto out_of_band = [](const Field& f) {
    std::optional<bool> asked;
    absl::Status read = f.Bool(&asked);
    return asked.value_or(false) ? f.Wrong("only the reports that come with calls are supported") : read;
  };
  const auto penalty = [&](const Field& f) {
    absl::Status read = f.Number(-1, 1e6, &weights->error_penalty);
    return weights->error_penalty < 0 ? f.Wrong("expected a number of at least 0") : read;
  };
  return field.Object(
      {{"enableOobLoadReport", out_of_band},
       {"oobReportingPeriod", [&](const Field& f) { return f.Duration(&period); }},
       {"blackoutPeriod", [&](const Field& f) { return f.Duration(&weights->blackout, /*zero=*/true); }},
       {"weightExpirationPeriod", [&](const Field& f) { return f.Duration(&weights->expiration); }},
       {"weightUpdatePeriod", [&](const Field& f) { return f.Duration(&weights->update); }},
       {"errorUtilizationPenalty", penalty}});
}

absl::Status ReadBalancer(const Field& field, BalancerOptions* options) {
  if (options->name.starts_with("ring_hash")) {
    absl::Status status =
        field.Object({{"minRingSize", Number(&options->min_ring_size, 1, kMostRingPlaces)},
                      {"maxRingSize", Number(&options->max_ring_size, 1, kMostRingPlaces)},
                      {"requestHashHeader", [&](const Field& f) { return f.Text(&options->hash_key); }}});
    if (status.ok() && options->min_ring_size > options->max_ring_size)
      return field.Wrong("minRingSize is above maxRingSize");
    return status;
  }
  if (options->name.starts_with("least_request"))
    return field.Object({{"choiceCount", Number(&options->choices, 2, 10)}});
  if (options->name == kWeightedRoundRobin) return ReadWeights(field, &options->weights);
  if (options->name == "pick_first") {
    // Of gRPC; a list is used in its order here.
    std::optional<bool> shuffle;
    return field.Object({{"shuffleAddressList", [&](const Field& f) { return f.Bool(&shuffle); }}});
  }
  return field.Object({});
}

absl::Status ReadSuccessRate(const Field& field, OutlierOptions::SuccessRate* rule) {
  return field.Object({{"stdevFactor", Number(&rule->stdev_factor, 0, UINT32_MAX)},
                       {"enforcementPercentage", Number(&rule->enforcement, 0, 100)},
                       {"minimumHosts", Number(&rule->minimum_hosts, 0, UINT32_MAX)},
                       {"requestVolume", Number(&rule->request_volume, 0, UINT32_MAX)}});
}

absl::Status ReadFailurePercentage(const Field& field, OutlierOptions::FailurePercentage* rule) {
  return field.Object({{"threshold", Number(&rule->threshold, 0, 100)},
                       {"enforcementPercentage", Number(&rule->enforcement, 0, 100)},
                       {"minimumHosts", Number(&rule->minimum_hosts, 0, UINT32_MAX)},
                       {"requestVolume", Number(&rule->request_volume, 0, UINT32_MAX)}});
}

absl::Status ReadFailuresInARow(const Field& field, ConsecutiveFailuresRule* rule) {
  return field.Object({{"threshold", Number(&rule->threshold, 1, UINT32_MAX)},
                       {"enforcementPercentage", Number(&rule->enforcement, 0, 100)}});
}

absl::Status ReadOutlierDetection(const Field& field, BalancerOptions* options) {
  OutlierOptions outliers;
  std::optional<BalancerOptions> child;
  absl::Status status = field.Object(
      {{"interval", [&](const Field& f) { return f.Duration(&outliers.interval); }},
       {"baseEjectionTime", [&](const Field& f) { return f.Duration(&outliers.base_ejection); }},
       {"maxEjectionTime", [&](const Field& f) { return f.Duration(&outliers.max_ejection); }},
       {"maxEjectionPercent", Number(&outliers.max_percent, 0, 100)},
       {"successRateEjection",
        [&](const Field& f) { return ReadSuccessRate(f, &outliers.success_rate.emplace()); }},
       {"failurePercentageEjection",
        [&](const Field& f) { return ReadFailurePercentage(f, &outliers.failure_percentage.emplace()); }},
       {"consecutiveFailureEjection",
        [&](const Field& f) { return ReadFailuresInARow(f, &outliers.consecutive_failures.emplace()); }},
       {"childPolicy", [&](const Field& f) { return ReadBalancers(f, &child); }}});
  if (!status.ok()) return status;
  if (!child) return field.Wrong("childPolicy is missing");
  if (child->outliers) return field.Wrong("childPolicy detects outliers, too");
  *options = *std::move(child);
  options->outliers = outliers;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadBalancers(const Field& field, std::optional<BalancerOptions>* balancer) {
  absl::Status status = field.Each([&](const Field& one) {
    BalancerOptions options;
    options.name.clear();
    return one.Single(&options.name, [&](const Field& value) {
      const bool detects = options.name == kOutlierDetection;
      if (balancer->has_value() || !(detects || IsBalancer(options.name))) return absl::OkStatus();
      absl::Status read = detects ? ReadOutlierDetection(value, &options) : ReadBalancer(value, &options);
      *balancer = options;
      return read;
    });
  });
  if (status.ok() && !balancer->has_value()) {
    return field.Wrong(Join("none of these is known; there are ", BalancerNames()));
  }
  return status;
}

}  // namespace curtail::internal
