// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/json_journey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "curtail/base/strings.h"
#include "message/load_test.pb.h"

namespace curtail {
namespace {

using loadtest::Item;
using loadtest::Nasty;
using testing::HasSubstr;

const Catalog& Methods() {
  static const Catalog* const catalog = [] {
    const std::string file = Join(testing::TempDir(), "/json_journey_test.", getpid(), ".proto");
    std::string text = loadtest::Nasty::descriptor()->file()->DebugString();
    std::ofstream(file) << text;
    const absl::StatusOr<Catalog> read = Catalog::FromProtoFiles({file}, {});
    EXPECT_TRUE(read.ok()) << read.status();
    std::remove(file.c_str());
    return new Catalog(*read);
  }();
  return *catalog;
}

JourneyStep StepOf(std::string name, std::string method, std::string json = "{}") {
  JourneyStep step;
  step.name = {std::move(name), "j.yaml:1"};
  step.method = {Join("curtail.loadtest.Nasties/", method), "j.yaml:2"};
  step.json = {std::move(json), "j.yaml:3"};
  return step;
}

absl::StatusOr<std::shared_ptr<const Journey>> Make(const std::vector<JourneyStep>& steps) {
  return MakeJsonJourney("j.yaml", Methods(), steps, 1);
}

// The request of the second step after `reply` to the first, or its error.
template <class Reply>
absl::StatusOr<std::string> After(const Reply& reply, std::string json) {
  const bool nasty = Reply::descriptor() == Nasty::descriptor();
  const auto made =
      Make({StepOf("first", nasty ? "Send" : "Seek"), StepOf("second", "Send", std::move(json))});
  if (!made.ok()) return made.status();
  KeptValues kept;
  if (absl::Status status = (*made)->Keep(0, reply.SerializeAsString(), &kept); !status.ok()) return status;
  return (*made)->StepRequest(1, 0, kept);
}

Nasty Parsed(const absl::StatusOr<std::string>& request) {
  Nasty message;
  EXPECT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(!request.ok() || message.ParseFromString(*request));
  return message;
}

TEST(JsonJourney, FieldsOfRepliesFitEveryKindOfField) {
  Nasty reply;
  reply.set_a_double(0.1);
  reply.set_an_int64(-7);
  reply.set_a_uint64(18'446'744'073'709'551'615u);
  reply.set_a_bool(true);
  reply.set_a_string("t\xc3\xa4xt {{index}}");
  reply.set_a_bytes(std::string("\0\xff", 2));
  reply.set_a_color(loadtest::VIOLET);
  reply.mutable_an_item()->mutable_inner()->set_name("deep");
  reply.add_items()->set_weight(3);
  reply.add_items()->set_weight(4);
  reply.add_int32s(11);
  const Nasty sent = Parsed(After(reply, R"({
    "a_double": "{{reply.first.a_double}}", "an_int64": "{{reply.first.an_int64}}",
    "a_uint64": "{{reply.first.aUint64}}", "a_bool": "{{reply.first.a_bool}}",
    "a_string": "<{{reply.first.a_string}}>", "a_bytes": "{{reply.first.a_bytes}}",
    "a_color": "{{reply.first.a_color}}", "an_item": {"name": "{{reply.first.an_item.inner.name}}"},
    "a_sint32": "{{reply.first.items[1].weight}}", "strings": ["{{reply.first.int32s[0]}}"],
    "maybe_text": "{{reply.first.a_string}}", "an_int32": "{{reply.first.a_fixed32}}"})"));
  EXPECT_EQ(sent.a_double(), 0.1);
  EXPECT_EQ(sent.an_int64(), -7);
  EXPECT_EQ(sent.a_uint64(), reply.a_uint64());
  EXPECT_TRUE(sent.a_bool());
  EXPECT_EQ(sent.a_string(), "<t\xc3\xa4xt {{index}}>");
  EXPECT_EQ(sent.a_bytes(), reply.a_bytes());
  EXPECT_EQ(sent.a_color(), loadtest::VIOLET);
  EXPECT_EQ(sent.an_item().name(), "deep");
  EXPECT_EQ(sent.a_sint32(), 4);
  EXPECT_EQ(sent.strings(0), "11");
  EXPECT_EQ(sent.maybe_text(), reply.a_string());
  EXPECT_EQ(sent.an_int32(), 0);
}

TEST(JsonJourney, AValueThatIsAbsentOrDoesNotFitFailsTheStep) {
  const auto error = [](const char* json) {
    Nasty reply;
    reply.set_a_string("abc");
    reply.set_an_int64(1'000'000'000'000);
    return std::string(After(reply, json).status().message());
  };
  EXPECT_EQ(error(R"({"a_string": "{{reply.first.items[0].name}}"})"),
            "{{reply.first.items[0].name}} has no value in this reply");
  EXPECT_EQ(error(R"({"a_string": "{{reply.first.an_item.name}}"})"),
            "{{reply.first.an_item.name}} has no value in this reply");
  EXPECT_EQ(error(R"({"a_string": "{{reply.first.maybe_text}}"})"),
            "{{reply.first.maybe_text}} has no value in this reply");
  EXPECT_THAT(error(R"({"an_int32": "{{reply.first.a_string}}"})"),
              HasSubstr("{{reply.first.a_string}}: \"abc\" is not a valid int32"));
  EXPECT_THAT(error(R"({"items": [{"weight": "{{reply.first.an_int64}}"}]})"),
              HasSubstr("{{reply.first.an_int64}}"));
}

TEST(JsonJourney, AReplyOfAnotherTypeFailsTheStep) {
  const auto made = Make(
      {StepOf("first", "Send"), StepOf("second", "Send", R"({"a_string": "{{reply.first.a_string}}"})")});
  ASSERT_TRUE(made.ok()) << made.status();
  KeptValues kept;
  EXPECT_EQ((*made)->Keep(0, "\xff\xff", &kept).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE((*made)->Keep(1, "\xff\xff", &kept).ok()) << "nobody uses it";
}

TEST(JsonJourney, MetadataOfAStepUsesReplies) {
  std::vector<JourneyStep> steps = {StepOf("login", "Send"), StepOf("list", "Send")};
  steps[1].metadata = {{"authorization: Bearer {{reply.login.a_string}}", ""},
                       {"x-raw-bin: {{reply.login.a_bytes}}", ""}};
  const auto made = Make(steps);
  ASSERT_TRUE(made.ok()) << made.status();
  Nasty reply;
  reply.set_a_string("secret");
  reply.set_a_bytes("\xff");
  KeptValues kept;
  ASSERT_TRUE((*made)->Keep(0, reply.SerializeAsString(), &kept).ok());
  wire::Metadata metadata;
  ASSERT_TRUE((*made)->AddStepMetadata(1, 0, kept, &metadata).ok());
  EXPECT_EQ(metadata.Find("authorization"), "Bearer secret");
  EXPECT_EQ(metadata.Find("x-raw-bin"), "\xff");

  reply.set_a_string("two\nlines");
  ASSERT_TRUE((*made)->Keep(0, reply.SerializeAsString(), &kept).ok());
  EXPECT_EQ((*made)->AddStepMetadata(1, 0, kept, &metadata).message(),
            "the value of the metadata authorization is not printable");
}

TEST(JsonJourney, PausesAreFixedOrExponentialAndBounded) {
  std::vector<JourneyStep> steps = {StepOf("a", "Send"), StepOf("b", "Send"), StepOf("c", "Send")};
  steps[1].pause = std::chrono::milliseconds(3);
  steps[2].pause = std::chrono::milliseconds(2);
  steps[2].exponential = true;
  const auto made = Make(steps);
  ASSERT_TRUE(made.ok()) << made.status();
  constexpr int kDraws = 20'000;
  Nanos sum{0}, longest{0};
  for (int i = 0; i < kDraws; ++i) {
    EXPECT_EQ((*made)->PauseBefore(1, i), std::chrono::milliseconds(3));
    const Nanos drawn = (*made)->PauseBefore(2, i);
    sum += drawn;
    longest = std::max(longest, drawn);
  }
  EXPECT_NEAR(static_cast<double>(sum.count()) / kDraws / 2e6, 1, 0.05);
  EXPECT_GT(longest, std::chrono::milliseconds(10));
  EXPECT_LE(longest, std::chrono::milliseconds(20));
  EXPECT_EQ((*made)->longest_pauses(), std::chrono::milliseconds(23));
}

// Property: what one step draws tells nothing of what another draws.
TEST(JsonJourney, StepsDrawForThemselves) {
  std::vector<JourneyStep> steps = {
      StepOf("a", "Send", R"({"an_int64":"{{uniform 1 1000000}}","a_uint64":"{{uniform 1 1000000}}"})"),
      StepOf("b", "Send", R"({"an_int64":"{{uniform 1 1000000}}"})")};
  for (JourneyStep& step : steps) step.pause = std::chrono::seconds(1), step.exponential = true;
  const auto made = Make(steps);
  ASSERT_TRUE(made.ok()) << made.status();
  int same = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const Nasty first = Parsed((*made)->StepRequest(0, i, {})),
                second = Parsed((*made)->StepRequest(1, i, {}));
    const auto other = static_cast<uint64_t>(second.an_int64());
    same += other == first.a_uint64() || second.an_int64() == first.an_int64() ? 1 : 0;
    same += (*made)->PauseBefore(1, i) == (*made)->PauseBefore(0, i + 1) ? 1 : 0;
  }
  EXPECT_LE(same, 1);
}

TEST(JsonJourney, MistakesNameTheirPlaceAndARemedy) {
  const auto error = [](std::vector<JourneyStep> steps) {
    const auto made = Make(steps);
    EXPECT_FALSE(made.ok());
    return std::string(made.status().message());
  };
  const auto second = [&](const char* json) {
    return error({StepOf("first", "Send"), StepOf("second", "Send", json)});
  };
  EXPECT_EQ(error({}), "j.yaml: a journey has from 1 to 100 steps");
  EXPECT_EQ(error({StepOf("a b", "Send")}),
            "j.yaml:1: 'a b' is not a name; use up to 40 letters, digits, '-' and '_'");
  EXPECT_EQ(error({StepOf("a", "Send"), StepOf("a", "Seek")}), "j.yaml:1: two steps are called 'a'");
  EXPECT_THAT(error({StepOf("a", "Sned")}), HasSubstr("j.yaml:2: "));
  EXPECT_THAT(error({StepOf("a", "Watch")}), HasSubstr("j.yaml:2: "));
  EXPECT_THAT(second(R"({"a_strin": ""})"),
              HasSubstr("j.yaml:3: data:1:2: curtail.loadtest.Nasty has no field \"a_strin\""));
  EXPECT_THAT(second("{} {}"), HasSubstr("j.yaml:3: data:1:4: more text follows the request"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.frist.a_string}}"})"),
              HasSubstr("no earlier step is called \"frist\"; did you mean \"first\"?"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.second.a_string}}"})"), HasSubstr("no earlier step"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first}}"})"), HasSubstr("name a field of the reply"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first.a_strng}}"})"), HasSubstr("did you mean \"a_string\"?"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first.an_item}}"})"),
              HasSubstr("an_item is a message: name one of its fields"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first.a_string.x}}"})"), HasSubstr("a_string has no fields"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first.items.name}}"})"),
              HasSubstr("items is a list: write items[0]"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first.a_string[0]}}"})"), HasSubstr("is not a list"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first.items[x].name}}"})"), HasSubstr("an index is a number"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first.items[-1].name}}"})"), HasSubstr("an index is a number"));
  for (const char* index : {"[", "[0", "[]", "[0]x", "]0[", "[99999999999999999999]"}) {
    EXPECT_THAT(second(Join(R"({"a_string": "{{reply.first.items)", index, R"(.name}}"})").c_str()),
                testing::AnyOf(HasSubstr("an index is a number"), HasSubstr("has no field")))
        << index;
  }
  EXPECT_THAT(second(R"({"a_string": "{{reply.}}"})"), HasSubstr("no earlier step is called"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first.}}"})"), HasSubstr("has no field"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first.items[0]..name}}"})"), HasSubstr("has no field"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first.counts[0]}}"})"), HasSubstr("counts is a map"));
  EXPECT_THAT(second(R"({"a_string": "{{reply.first.a_bytes}}"})"), HasSubstr("do not all fit"));
  EXPECT_THAT(second(R"({"a_bytes": "{{reply.first.a_string}}"})"), HasSubstr("do not all fit"));
}

}  // namespace
}  // namespace curtail
