// SPDX-License-Identifier: Apache-2.0
//
// Health checks; reflection_test.cc has reflection.
#include "curtail/rpc/server/builtin/builtin_services.h"

#include <gtest/gtest.h>

namespace curtail::internal {
namespace {

TEST(HealthService, ServesUntilTheServerDrains) {
  bool draining = false;
  const auto health = NewHealthService({"a.B"}, [&draining] { return draining; });
  const std::vector<MethodHandler> methods = health->Handlers();
  const auto check = [&](std::string_view request) {
    Context ctx(Deadline::Infinite());
    std::string reply;
    const absl::Status status = methods.at(0).handler(ctx, request, &reply);
    return status.ok() ? reply : absl::StatusCodeToString(status.code());
  };
  const auto watch = [&](std::string_view request) {
    Context ctx(Deadline::Infinite());
    std::string state;
    const absl::Status status = methods.at(1).handler(ctx, request, &state);
    return state + " " + absl::StatusCodeToString(status.code());
  };
  // HealthCheckResponse.status
  const std::string serving("\x08\x01"), not_serving("\x08\x02"), service_unknown("\x08\x03");
  const std::string known(
      "\x0a\x03"
      "a.B"),
      unknown(
          "\x0a\x03"
          "a.C");
  EXPECT_EQ(check(""), serving);
  EXPECT_EQ(check(known), serving);
  EXPECT_EQ(check(unknown), "NOT_FOUND");
  EXPECT_EQ(watch(known), serving + " OK");
  EXPECT_EQ(watch(unknown), service_unknown + " OK");
  EXPECT_EQ(watch("\xff"), " INTERNAL");
  draining = true;
  EXPECT_EQ(check(""), not_serving);
  EXPECT_EQ(check(known), not_serving);
  EXPECT_EQ(check(unknown), "NOT_FOUND");
  EXPECT_EQ(watch(""), not_serving + " UNAVAILABLE");
  EXPECT_EQ(watch(unknown), service_unknown + " UNAVAILABLE");
}

}  // namespace
}  // namespace curtail::internal
