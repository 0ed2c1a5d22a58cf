// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "curtail/base/strings.h"
#include "curtail/fence/fence.h"

namespace curtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FenceOptions, ReadsTheLimitOfAClass) {
  const absl::StatusOr<ClassLimit> limit = ParseClassLimit("a.Users+store:cache+a.Posts=12");
  ASSERT_TRUE(limit.ok()) << limit.status();
  EXPECT_THAT(limit->services, ElementsAre("a.Users", "store:cache", "a.Posts"));
  EXPECT_EQ(limit->limit, 12u);
  EXPECT_EQ(ServicesText(limit->services), "a.Posts+a.Users+store:cache");
  for (const char* text : {"", "=", "a", "a=", "=3", "a=0", "a=-1", "a=1.5", "a=1e12", "a=x", "+=1", "a+=1",
                           "a++b=1", "+a=1", "a=1 ", "a=nan"}) {
    EXPECT_EQ(ParseClassLimit(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(FenceOptions, RefusesLimitsThatCannotHold) {
  const auto refusal = [](std::vector<ClassLimit> limits) {
    const FenceOptions options{.mode = FenceMode::kStrict, .limits = std::move(limits)};
    return std::string(Message(options.Check()));
  };
  EXPECT_EQ(refusal({{{"a"}, 1}, {{"a", "b"}, 2}}), "");
  EXPECT_THAT(Message(FenceOptions{.limits = {{{"a"}, 1}}}.Check()),
              HasSubstr("the limit of a needs a fence"));
  EXPECT_THAT(refusal({{{"a"}, 0}}), HasSubstr("the limit of a is at least 1"));
  EXPECT_THAT(refusal({{{}, 1}}), HasSubstr("name them"));
  EXPECT_THAT(refusal({{{"a", ""}, 1}}), HasSubstr("name them"));
  EXPECT_THAT(refusal({{{"b", "a"}, 1}, {{"a", "b"}, 2}}), HasSubstr("a+b has two limits"));
  std::vector<ClassLimit> many;
  for (size_t i = 0; i <= FenceOptions::kMaxLimits; ++i) many.push_back({{std::to_string(i)}, 1});
  EXPECT_THAT(refusal(many), HasSubstr("at most 61"));
}

}  // namespace
}  // namespace curtail
