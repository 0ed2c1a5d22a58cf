// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/config/service_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

std::string Error(std::string_view json) {
  const absl::Status status = ParseServiceConfig(json).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << json;
  return std::string(Message(status));
}

TEST(ServiceConfig, ReadsAllThatItKnows) {
  const auto config = ParseServiceConfig(R"({
    "loadBalancingConfig": [{"xds_unknown": {"a": 1}},
                            {"ring_hash": {"minRingSize": 64, "maxRingSize": "128", "requestHashHeader": "x-user"}},
                            {"round_robin": {}}],
    "methodConfig": [
      {"name": [{"service": "a.B", "method": "C"}, {"service": "a.D"}],
       "timeout": "1.5s", "waitForReady": true, "maxRequestMessageBytes": 10, "maxResponseMessageBytes": "20",
       "retryPolicy": {"maxAttempts": 9, "initialBackoff": "0.01s", "maxBackoff": "1s", "backoffMultiplier": 1.5,
                       "retryableStatusCodes": ["UNAVAILABLE", 8]}},
      {"name": [{}], "timeout": "3s",
       "hedgingPolicy": {"maxAttempts": 7, "hedgingDelay": "0s", "nonFatalStatusCodes": ["UNAVAILABLE"]}}],
    "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.125}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->balancer->name, "ring_hash");
  EXPECT_EQ(config->balancer->hash_key, "x-user");
  EXPECT_EQ(config->balancer->min_ring_size, 64u);
  EXPECT_EQ(config->balancer->max_ring_size, 128u);
  const MethodConfig* const method = config->Find("/a.B/C");
  ASSERT_NE(method, nullptr);
  EXPECT_EQ(method->timeout, Nanos(milliseconds(1500)));
  EXPECT_EQ(method->wait_for_ready, true);
  EXPECT_EQ(method->max_request_bytes, 10u);
  EXPECT_EQ(method->max_response_bytes, 20u);
  ASSERT_TRUE(method->retry.has_value());
  EXPECT_EQ(method->retry->max_attempts, 5);  // gRPC's bound
  EXPECT_EQ(method->retry->initial_backoff, Nanos(milliseconds(10)));
  EXPECT_EQ(method->retry->max_backoff, Nanos(seconds(1)));
  EXPECT_EQ(method->retry->multiplier, 1.5);
  EXPECT_TRUE(method->retry->Repeats(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(method->retry->Repeats(absl::StatusCode::kResourceExhausted));
  EXPECT_FALSE(method->retry->Repeats(absl::StatusCode::kInternal));
  EXPECT_FALSE(method->retry->Repeats(absl::StatusCode::kOk));
  const std::optional<HedgingPolicy>& hedging = config->Find("/x.Y/Z")->hedging;
  ASSERT_TRUE(hedging.has_value());
  EXPECT_EQ(hedging->max_attempts, 5);
  EXPECT_EQ(hedging->delay, Nanos::zero());
  EXPECT_TRUE(hedging->IsNonFatal(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(hedging->IsNonFatal(absl::StatusCode::kInternal));
  EXPECT_EQ(config->throttle->max_milli_tokens, 10'000);
  EXPECT_EQ(config->throttle->milli_ratio, 125);
}

TEST(ServiceConfig, ReadsOutlierDetectionAndHealthChecks) {
  const auto config = ParseServiceConfig(R"({
    "loadBalancingConfig": [{"outlier_detection_experimental": {
      "interval": "1s", "baseEjectionTime": "2s", "maxEjectionTime": "3s", "maxEjectionPercent": 40,
      "successRateEjection": {"stdevFactor": 1000, "enforcementPercentage": 50, "minimumHosts": 2, "requestVolume": 3},
      "failurePercentageEjection": {"threshold": 4, "enforcementPercentage": 5, "minimumHosts": 6, "requestVolume": 7},
      "consecutiveFailureEjection": {"threshold": 8, "enforcementPercentage": 9},
      "childPolicy": [{"unknown": {}}, {"least_request": {"choiceCount": 3}}]}}],
    "healthCheckConfig": {"serviceName": "a.B"}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->balancer->name, "least_request");
  EXPECT_EQ(config->balancer->choices, 3u);
  ASSERT_TRUE(config->balancer->outliers.has_value());
  const OutlierOptions& outliers = *config->balancer->outliers;
  EXPECT_EQ(outliers.interval, Nanos(seconds(1)));
  EXPECT_EQ(outliers.base_ejection, Nanos(seconds(2)));
  EXPECT_EQ(outliers.max_ejection, Nanos(seconds(3)));
  EXPECT_EQ(outliers.max_percent, 40u);
  EXPECT_EQ(outliers.success_rate->stdev_factor, 1000u);
  EXPECT_EQ(outliers.success_rate->enforcement, 50u);
  EXPECT_EQ(outliers.failure_percentage->threshold, 4u);
  EXPECT_EQ(outliers.consecutive_failures->threshold, 8u);
  EXPECT_EQ(outliers.consecutive_failures->enforcement, 9u);
  EXPECT_EQ(outliers.failure_percentage->minimum_hosts, 6u);
  EXPECT_EQ(outliers.failure_percentage->request_volume, 7u);
  EXPECT_EQ(config->health_service, "a.B");
  EXPECT_FALSE(ParseServiceConfig(R"({"healthCheckConfig":{}})")->health_service.has_value());
}

TEST(ServiceConfig, ReadsTheTimesOfWeights) {
  const auto config = ParseServiceConfig(R"({"loadBalancingConfig": [{"weighted_round_robin": {
      "enableOobLoadReport": false, "oobReportingPeriod": "10s", "blackoutPeriod": "0s", "weightExpirationPeriod": "2s",
      "weightUpdatePeriod": "3s", "errorUtilizationPenalty": 0}}]})");
  ASSERT_TRUE(config.ok()) << config.status();
  const WeightOptions& weights = config->balancer->weights;
  EXPECT_EQ(weights.blackout, Nanos::zero());
  EXPECT_EQ(weights.expiration, Nanos(seconds(2)));
  EXPECT_EQ(weights.update, Nanos(seconds(3)));
  EXPECT_EQ(weights.error_penalty, 0);
}

TEST(ServiceConfig, TheMostSpecificNameDecides) {
  const auto config = ParseServiceConfig(R"({"methodConfig": [
      {"name": [{}], "timeout": "1s"}, {"name": [{"service": "a.B"}], "timeout": "2s"},
      {"name": [{"service": "a.B", "method": "C"}], "timeout": "3s"}]})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->Find("/x.Y/Z")->timeout, Nanos(seconds(1)));
  EXPECT_EQ(config->Find("/a.B/Z")->timeout, Nanos(seconds(2)));
  EXPECT_EQ(config->Find("/a.B/C")->timeout, Nanos(seconds(3)));
  EXPECT_EQ(config->Find("")->timeout, Nanos(seconds(1)));
  EXPECT_EQ(ParseServiceConfig("{}")->Find("/a.B/C"), nullptr);
}

// As other implementations of gRPC publish them, read by grpc-go.
TEST(ServiceConfig, TakesForeignConfigs) {
  const auto config = ParseServiceConfig(R"({
    "loadBalancingPolicy": "ROUND_ROBIN", "xdsThing": {"a": [1]},
    "methodConfig": [{"name": [{"service": "a.B", "note": 1}], "timeout": "1.s", "owner": "me",
      "retryPolicy": {"maxAttempts": 4, "initialBackoff": ".1s", "maxBackoff": ".01s", "backoffMultiplier": 2,
                      "retryableStatusCodes": ["UNAVAILABLE"], "perAttemptRecvTimeout": "1s"}}]})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->balancer->name, "round_robin");
  const MethodConfig* const method = config->Find("/a.B/C");
  ASSERT_NE(method, nullptr);
  EXPECT_EQ(method->timeout, Nanos(seconds(1)));
  EXPECT_EQ(method->retry->initial_backoff, Nanos(milliseconds(100)));
  EXPECT_EQ(method->retry->max_backoff, Nanos(milliseconds(10)));
  EXPECT_FALSE(ParseServiceConfig(R"({"loadBalancingPolicy": "grpclb"})")->balancer.has_value());
  const auto both = ParseServiceConfig(
      R"({"loadBalancingPolicy": "round_robin", "loadBalancingConfig": [{"pick_first": {"later": true}}]})");
  EXPECT_EQ(both->balancer->name, "pick_first");
}

// The bytes of such a text end with its memory, so that sanitizers see a read beyond it.
TEST(ServiceConfig, ATextMayEndWithinACharacter) {
  for (const std::string_view half : {"\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xf4"}) {
    const std::string text = "{\"loadBalancingConfig" + std::string(half);
    const std::vector<char> exact(text.begin(), text.end());
    EXPECT_FALSE(ParseServiceConfig({exact.data(), exact.size()}).ok());
  }
}

TEST(ServiceConfig, EachWrongFieldIsNamed) {
  const std::string retry = R"({"methodConfig":[{"name":[{}],"retryPolicy":)";
  const std::string rest = R"("initialBackoff":"1s","maxBackoff":"1s","backoffMultiplier":2)";
  const std::pair<std::string, const char*> cases[] = {
      {"", "no valid JSON at byte 0"},
      {"[]", "service config: expected an object"},
      {R"({"methodConfig":{}})", "methodConfig: expected a list"},
      {R"({"loadBalancingConfig":[{"weighted_round_robin":{"enableOobLoadReport":true}}]})",
       "weighted_round_robin.enableOobLoadReport: only the reports that come with calls"},
      {R"({"loadBalancingConfig":[{"weighted_round_robin":{"errorUtilizationPenalty":-0.5}}]})",
       "weighted_round_robin.errorUtilizationPenalty: expected a number of at least 0"},
      {R"({"methodConfig":[],"methodConfig":[]})", "methodConfig: this field is there twice"},
      {R"({"methodConfig":[1]})", "methodConfig[0]: expected an object"},
      {R"({"methodConfig":[{}]})", "methodConfig[0]: name is missing"},
      {R"({"methodConfig":[{"name":[]}]})", "methodConfig[0]: name is missing"},
      {R"({"methodConfig":[{"name":[{"method":"M"}]}]})",
       "methodConfig[0].name[0]: a method without a service"},
      {R"({"methodConfig":[{"name":[{"service":"a/b"}]}]})", "methodConfig[0].name[0]: a name has no '/'"},
      {R"({"methodConfig":[{"name":[{},{}]}]})", "methodConfig[0].name[1]: there are two configs for all"},
      {R"({"methodConfig":[{"name":[{}],"timeout":1}]})", "methodConfig[0].timeout: expected a time"},
      {R"({"methodConfig":[{"name":[{}],"timeout":"1"}]})", "methodConfig[0].timeout: expected a time"},
      {R"({"methodConfig":[{"name":[{}],"timeout":"0s"}]})", "methodConfig[0].timeout: expected a time"},
      {R"({"methodConfig":[{"name":[{}],"timeout":"-1s"}]})", "methodConfig[0].timeout: expected a time"},
      {R"({"methodConfig":[{"name":[{}],"timeout":".s"}]})", "methodConfig[0].timeout: expected a time"},
      {R"({"methodConfig":[{"name":[{}],"timeout":"s"}]})", "methodConfig[0].timeout: expected a time"},
      {R"({"methodConfig":[{"name":[{}],"timeout":"1.0000000001s"}]})",
       "methodConfig[0].timeout: expected a time"},
      {R"({"methodConfig":[{"name":[{}],"waitForReady":"yes"}]})",
       "methodConfig[0].waitForReady: expected true"},
      {R"({"methodConfig":[{"name":[{}],"maxRequestMessageBytes":-1}]})",
       "methodConfig[0].maxRequestMessageBytes: expected a whole number"},
      {R"({"methodConfig":[{"name":[{}],"maxResponseMessageBytes":"x"}]})",
       "methodConfig[0].maxResponseMessageBytes: expected a whole number"},
      {R"({"methodConfig":[{"name":[{}],"hedgingPolicy":{}}]})",
       "methodConfig[0].hedgingPolicy: maxAttempts is missing"},
      {R"({"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":1}}]})",
       "methodConfig[0].hedgingPolicy.maxAttempts: expected a whole number from 2"},
      {R"({"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2,"hedgingDelay":"-1s"}}]})",
       "hedgingPolicy.hedgingDelay: expected a time such as"},
      {R"({"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2,"nonFatalStatusCodes":["SOME"]}}]})",
       "hedgingPolicy.nonFatalStatusCodes[0]: expected the name of a status code"},
      {retry + R"({"maxAttempts":2,"retryableStatusCodes":[8],)" + rest +
           R"(},"hedgingPolicy":{"maxAttempts":2}}]})",
       "methodConfig[0]: has a retryPolicy and a hedgingPolicy"},
      {retry + "{}}]}", "methodConfig[0].retryPolicy: maxAttempts is missing"},
      {retry + R"({"maxAttempts":1}}]})", "retryPolicy.maxAttempts: expected a whole number from 2"},
      {retry + R"({"maxAttempts":2,)" + rest + "}}]}", "retryPolicy: retryableStatusCodes is missing"},
      {retry + R"({"maxAttempts":2,"retryableStatusCodes":["OK"],)" + rest + "}}]}",
       "retryPolicy.retryableStatusCodes[0]: expected the name of a status code"},
      {retry + R"({"maxAttempts":2,"retryableStatusCodes":[17],)" + rest + "}}]}",
       "retryPolicy.retryableStatusCodes[0]: expected the name of a status code"},
      {retry + R"({"maxAttempts":2,"backoffMultiplier":0}}]})",
       "retryPolicy.backoffMultiplier: expected a number"},
      {R"({"retryThrottling":{"maxTokens":1001}})",
       "retryThrottling.maxTokens: expected a number above 0, at most 1000"},
      {R"({"retryThrottling":{"maxTokens":10}})", "retryThrottling: tokenRatio is missing"},
      {R"({"loadBalancingConfig":[{"robin":{}}]})", "loadBalancingConfig: none of these is known"},
      {R"({"loadBalancingConfig":[{"round_robin":{},"pick_first":{}}]})",
       "loadBalancingConfig[0]: expected an object with one member"},
      {R"({"loadBalancingConfig":[{"least_request":{"choiceCount":1}}]})",
       "loadBalancingConfig[0].least_request.choiceCount: expected a whole number from 2 to 10"},
      {R"({"loadBalancingConfig":[{"ring_hash":{"minRingSize":9,"maxRingSize":8}}]})",
       "loadBalancingConfig[0].ring_hash: minRingSize is above maxRingSize"},
      {R"({"loadBalancingConfig":[{"outlier_detection_experimental":{}}]})",
       "loadBalancingConfig[0].outlier_detection_experimental: childPolicy is missing"},
      {R"({"loadBalancingConfig":[{"outlier_detection_experimental":{"interval":"0s"}}]})",
       "outlier_detection_experimental.interval: expected a time"},
      {R"({"loadBalancingConfig":[{"outlier_detection_experimental":{"maxEjectionPercent":101}}]})",
       "maxEjectionPercent: expected a whole number from 0 to 100"},
      {R"({"loadBalancingConfig":[{"outlier_detection_experimental":{"childPolicy":[
          {"outlier_detection_experimental":{"childPolicy":[{"pick_first":{}}]}}]}}]})",
       "outlier_detection_experimental: childPolicy detects outliers, too"},
      {R"({"healthCheckConfig":{"serviceName":1}})", "healthCheckConfig.serviceName: expected a string"},
      {R"({"loadBalancingPolicy":1})", "loadBalancingPolicy: expected a string"},
      {std::string(kMaxServiceConfigBytes + 1, ' '), "bytes; at most"},
      {std::string(100'000, '['), "no valid JSON"},
  };
  for (const auto& [json, expected] : cases)
    EXPECT_THAT(Error(json), HasSubstr(expected)) << json.substr(0, 200);
}

}  // namespace
}  // namespace curtail::internal
