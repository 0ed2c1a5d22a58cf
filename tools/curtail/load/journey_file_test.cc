// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/journey_file.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::tool {
namespace {

using std::chrono::milliseconds;

TEST(ParseJourney, ReadsWhatAStepCanSay) {
  const auto steps = ParseJourney(R"(# shopping
steps:
  - name: login
    method: shop.Users/Login
  - name: buy
    method: shop.Cart/Buy
    pause: exponential 50ms
    data: |
      {"item": "{{uniform 1 9}}",
       "user": "{{reply.login.user}}"}
    metadata:
      authorization: Bearer {{reply.login.token}}
      x-id: "{{uuid}}"
  - {name: leave, method: shop.Users/Logout, data: '{}', pause: 1s}
)",
                                  "shop.yaml");
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->size(), 3u);
  const JourneyStep& login = (*steps)[0];
  EXPECT_EQ(login.name.text, "login");
  EXPECT_EQ(login.method.text, "shop.Users/Login");
  EXPECT_EQ(login.method.place, "shop.yaml:4");
  EXPECT_EQ(login.json.text, "{}");
  EXPECT_EQ(login.pause, Nanos(0));
  const JourneyStep& buy = (*steps)[1];
  EXPECT_EQ(buy.pause, milliseconds(50));
  EXPECT_TRUE(buy.exponential);
  EXPECT_EQ(buy.json.text, "{\"item\": \"{{uniform 1 9}}\",\n \"user\": \"{{reply.login.user}}\"}\n");
  ASSERT_EQ(buy.metadata.size(), 2u);
  EXPECT_EQ(buy.metadata[0].text, "authorization: Bearer {{reply.login.token}}");
  EXPECT_EQ(buy.metadata[1].text, "x-id: {{uuid}}");
  EXPECT_EQ(buy.metadata[1].place, "shop.yaml:13");
  EXPECT_EQ((*steps)[2].pause, std::chrono::seconds(1));
  EXPECT_FALSE((*steps)[2].exponential);
}

TEST(ParseJourney, RefusesWithLineAndHint) {
  const std::string step = "steps:\n  - name: a\n    method: b.C/D\n";
  const std::pair<std::string, const char*> cases[] = {
      {"", "j.yaml:1: a journey has one key, steps"},
      {"- name: a", "j.yaml:1: a journey has one key, steps"},
      {"step: []", "j.yaml:1: a journey has one key, steps"},
      {step + "rps: 5\n", "j.yaml:1: a journey has one key, steps"},
      {"steps:\n  name: a\n", "j.yaml:2: steps must be a list of at least one step"},
      {"steps: []", "j.yaml:1: steps must be a list of at least one step"},
      {"steps:\n  - login\n", "j.yaml:2: a step is written as name: NAME"},
      {"steps:\n  - name: a\n", "j.yaml:2: a step needs a method"},
      {"steps:\n  - method: a\n", "j.yaml:2: a step needs a name"},
      {step + "    pasue: 5ms\n", "j.yaml:4: a step has no key 'pasue'; did you mean \"pause\"?"},
      {step + "    data: {\"x\": 1}\n", "j.yaml:4: data must be JSON in quotes"},
      {step + "    metadata: bearer\n", "j.yaml:4: metadata must be KEY: VALUE lines"},
      {step + "    metadata: {x: [1]}\n", "j.yaml:4: a value of metadata must be one value"},
      {step + "    pause: 5\n", "j.yaml:4: '5' is not a pause; write pause: 50ms or pause: exponential 50ms"},
      {step + "    pause: uniform 5ms\n", "j.yaml:4: 'uniform 5ms' is not a pause"},
      {step + "    pause: -5ms\n", "j.yaml:4: '-5ms' is not a pause"},
      {step + "    pause: 5ms\n", "j.yaml:4: the first step has no pause"},
      {step + "  - [\n", "j.yaml:4: a { or [ is not closed"},
      {std::string((1 << 20) + 1, ' '), "j.yaml: longer than 1 MiB"},
  };
  for (const auto& [text, error] : cases) {
    const absl::Status status = ParseJourney(text, "j.yaml").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text.substr(0, 100);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(error)) << text.substr(0, 100);
  }
}

}  // namespace
}  // namespace curtail::tool
