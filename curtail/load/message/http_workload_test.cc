// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/http_workload.h"

#include "curtail/base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(HttpWorkload, DrawsBodiesOfAnyText) {
  const auto made = MakeHttpWorkload({.name = "POST /", .bodies = {"n={{index}}&w={{pick a b}} {{{{x}}"}}, 7);
  ASSERT_TRUE(made.ok()) << made.status();
  const Workload& workload = **made;
  EXPECT_EQ(workload.method(), "POST /");
  EXPECT_EQ(workload.distinct(), 0u);
  for (uint64_t i = 0; i < 20; ++i) {
    const std::string body = workload.Request(i);
    EXPECT_TRUE(body == Join("n=", i, "&w=a {{x}}") || body == Join("n=", i, "&w=b {{x}}")) << body;
    EXPECT_EQ(body, workload.Request(i)) << "the same each time";
  }
}

TEST(HttpWorkload, SendsBytesAsTheyAre) {
  const auto made = MakeHttpWorkload({.bodies = {"{{no placeholder"}, .drawn = false}, 1);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->Request(3), "{{no placeholder");
  EXPECT_EQ((*made)->distinct(), 1u);
}

TEST(HttpWorkload, ChoosesAmongBodies) {
  const auto made = MakeHttpWorkload({.bodies = {"a", "b", "c"}}, 1);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->distinct(), 3u);
  EXPECT_THAT((std::vector{(*made)->Request(0), (*made)->Request(1), (*made)->Request(5)}),
              ElementsAre("a", "b", "c"));
}

TEST(HttpWorkload, MayHaveNoBody) {
  const auto made = MakeHttpWorkload({.name = "GET /"}, 1);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->Request(9), "");
}

TEST(HttpWorkload, SaysWhatIsWrong) {
  const absl::Status status = MakeHttpWorkload({.bodies = {"fine", "{{nonsense}}"}}, 1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr("body 2: "));
  EXPECT_TRUE(absl::IsInvalidArgument(MakeHttpWorkload({.choice = "best"}, 1).status()));
}

TEST(BodiesOfLines, AreTheLinesThatAreNotEmpty) {
  EXPECT_THAT(BodiesOfLines("{\"a\": 1}\r\n\n  \n[2]\n3"), ElementsAre("{\"a\": 1}", "[2]", "3"));
  EXPECT_TRUE(BodiesOfLines("").empty());
}

}  // namespace
}  // namespace curtail
