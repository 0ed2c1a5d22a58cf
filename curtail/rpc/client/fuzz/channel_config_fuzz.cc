// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a service config and as a target: an error that says something, or a value that keeps its bounds.
//
// Raw input seldom gets past the JSON parser, so two thirds of the inputs are edits of a small valid text: two bytes say
// where, one says what.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "curtail/rpc/client/config/service_config.h"
#include "curtail/rpc/client/resolver/target.h"

namespace {

using namespace curtail;
using namespace curtail::internal;

void Require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::string_view kConfig =
    R"({"loadBalancingConfig":[{"outlier_detection_experimental":{"interval":"1s","maxEjectionPercent":20,)"
    R"("successRateEjection":{"stdevFactor":1000},"failurePercentageEjection":{"threshold":50,"minimumHosts":3},)"
    R"("childPolicy":[{"ring_hash":{"minRingSize":64}}]}}],"healthCheckConfig":{"serviceName":"a.B"},"methodConfig":[{"name":[{"service":"a.B",)"
    R"("method":"C"},{}],"timeout":"1.5s","waitForReady":true,"maxRequestMessageBytes":10,"retryPolicy":{)"
    R"("maxAttempts":3,"initialBackoff":"0.01s","maxBackoff":"1s","backoffMultiplier":1.5,)"
    R"("retryableStatusCodes":["UNAVAILABLE",8]}},{"name":[{"service":"a.H"}],"hedgingPolicy":{"maxAttempts":3,)"
    R"("hedgingDelay":"0.01s","nonFatalStatusCodes":[14]}}],"retryThrottling":{"maxTokens":10,"tokenRatio":0.1}})";
constexpr std::string_view kTargets[] = {"dns:///name:80", "ipv4:10.0.0.1:80,10.0.0.2:81",
                                         "ipv6:[fd00::1]:80,[fd00::2]:80", "unix:///a", "unix-abstract:b"};

void CheckConfig(std::string_view text) {
  const absl::StatusOr<ServiceConfig> config = ParseServiceConfig(text);
  if (!config.ok()) return Require(config.status().message().size() > 10);
  for (const auto& [name, index] : config->names) Require(index < config->methods.size());
  for (const MethodConfig& method : config->methods) {
    Require(!method.timeout || *method.timeout > Nanos::zero());
    Require(!method.hedging || (method.hedging->max_attempts >= 2 && method.hedging->max_attempts <= 5 &&
                                method.hedging->delay >= Nanos::zero() && !method.retry));
    if (!method.retry) continue;
    Require(method.retry->max_attempts >= 2 && method.retry->max_attempts <= 5);
    Require(method.retry->initial_backoff > Nanos::zero() && method.retry->codes != 0);
  }
  Require(!config->balancer || IsBalancer(config->balancer->name));
  if (!config->balancer || !config->balancer->outliers) return;
  const OutlierOptions& outliers = *config->balancer->outliers;
  Require(outliers.interval > Nanos::zero() && outliers.base_ejection > Nanos::zero() &&
          outliers.max_percent <= 100);
}

void CheckTarget(std::string_view text) {
  const absl::StatusOr<Target> target = ParseTarget(text);
  if (!target.ok()) return Require(target.status().message().size() > 10);
  Require(!target->authority.empty());
  if (target->resolver->Changes()) return;  // it would ask the name service
  const absl::StatusOr<std::vector<Address>> addresses = target->resolver->Resolve();
  Require(addresses.ok() && !addresses->empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view raw(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 3 == 0) {
    CheckConfig(raw);
    CheckTarget(raw);
    return 0;
  }
  std::string text(data[0] % 3 == 1 ? kConfig : kTargets[data[0] / 3 % std::size(kTargets)]);
  for (size_t i = 1; i + 2 < size && i < 60; i += 3)
    text[(data[i] * 256u + data[i + 1]) % text.size()] = static_cast<char>(data[i + 2]);
  data[0] % 3 == 1 ? CheckConfig(text) : CheckTarget(text);
  return 0;
}
