// SPDX-License-Identifier: Apache-2.0
//
// service_config.h - what a client should do for the methods of a service, in gRPC's JSON format.
//
// https://github.com/grpc/grpc/blob/master/doc/service_config.md
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/client/balancer/balancer.h"

namespace curtail::internal {

// How calls that failed are made again.
struct RetryPolicy {
  int max_attempts = 0;  // the first included; 2 to 5
  Nanos initial_backoff{0};
  Nanos max_backoff{0};
  double multiplier = 0;
  uint32_t codes = 0;  // bit i: status code i is worth another attempt

  bool Repeats(absl::StatusCode code) const { return (codes >> static_cast<unsigned>(code) & 1) != 0; }
};

// How calls that are slow are made once more beside the attempts before.
struct HedgingPolicy {
  int max_attempts = 0;  // the first included; 2 to 5
  Nanos delay{0};        // from one to the next
  uint32_t codes = 0;    // bit i: status code i of one attempt leaves the call to the others

  bool IsNonFatal(absl::StatusCode code) const { return (codes >> static_cast<unsigned>(code) & 1) != 0; }
};

// The rules for the calls of a method.
struct MethodConfig {
  std::optional<Nanos> timeout;
  std::optional<bool> wait_for_ready;
  std::optional<size_t> max_request_bytes;
  std::optional<size_t> max_response_bytes;
  std::optional<RetryPolicy> retry;  // or
  std::optional<HedgingPolicy> hedging;

  // True if a call may run more than once because of it.
  bool MakesAgain() const { return retry.has_value() || hedging.has_value(); }
};

// Retries end for a while when too many calls fail: see Throttle in attempts.h.
struct ThrottleConfig {
  int max_milli_tokens = 0;
  int milli_ratio = 0;  // tokens that a success gives back
};

struct ServiceConfig {
  // The config of "/package.Service/Method": its own, else the service's, else the one for all; null: none.
  const MethodConfig* Find(std::string_view path) const;
  // True if it is the method's own.
  bool Names(std::string_view path) const {
    return !path.empty() && !path.ends_with('/') && names.find(path) != names.end();
  }

  // By "/package.Service/Method", "/package.Service/" or "".
  std::map<std::string, size_t, std::less<>> names;
  std::vector<MethodConfig> methods;
  std::optional<ThrottleConfig> throttle;
  std::optional<BalancerOptions> balancer;
  // The service whose health decides if a server gets calls; "" is the server as such.
  std::optional<std::string> health_service;
};

// More attempts are counted as so many.
inline constexpr int kMostAttempts = 5;
// Longer texts are refused.
inline constexpr size_t kMaxServiceConfigBytes = 256u << 10;

// Understands `json`. Strict: unknown and repeated fields are errors, too.
// Errors: INVALID_ARGUMENT, which names the field.
[[nodiscard]] absl::StatusOr<ServiceConfig> ParseServiceConfig(std::string_view json);

}  // namespace curtail::internal
