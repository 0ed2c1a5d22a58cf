// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/retries.h"

#include <string_view>

#include "curtail/base/strings.h"

namespace curtail {
namespace {

// Retries go on while more than half of the tokens are there. A server that ends takes with it what it has in hand:
// so many calls may be made again at once. gRPC allows no more tokens.
constexpr std::string_view kThrottling = R"("retryThrottling":{"maxTokens":1000,"tokenRatio":0.1})";

// {"service":"package.Service","method":"Method"}
std::string NameOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return Join(R"({"service":")", path.substr(1, slash - 1), R"(","method":")", path.substr(slash + 1),
              R"("})");
}

// `policy` for `methods`: the name of its kind, and its fields but for the number of attempts.
std::string ConfigOf(std::string_view policy, int attempts, std::string_view fields,
                     std::span<const std::string> methods) {
  std::string names = methods.empty() ? "{}" : "";
  for (const std::string& method : methods) names += Join(names.empty() ? "" : ",", NameOf(method));
  return Join(R"({"methodConfig":[{"name":[)", names, R"(],")", policy, R"(":{"maxAttempts":)", attempts, ",",
              fields, "}}],", kThrottling, "}");
}

// "0.020000000s"
std::string DurationText(Nanos time) {
  constexpr int64_t kSecond = 1'000'000'000;
  return Join(time.count() / kSecond, ".", std::to_string(kSecond + time.count() % kSecond).substr(1), "s");
}

}  // namespace

std::string RetryConfig(int retries, std::span<const std::string> methods) {
  if (retries == 0) return {};
  return ConfigOf("retryPolicy", retries + 1,
                  R"("initialBackoff":"0.01s","maxBackoff":"1s","backoffMultiplier":2,)"
                  R"("retryableStatusCodes":["UNAVAILABLE"])",
                  methods);
}

std::string HedgeConfig(Nanos delay, int hedges, std::span<const std::string> methods) {
  return ConfigOf(
      "hedgingPolicy", hedges + 1,
      Join(R"("hedgingDelay":")", DurationText(delay), R"(","nonFatalStatusCodes":["UNAVAILABLE"])"),
      methods);
}

}  // namespace curtail
