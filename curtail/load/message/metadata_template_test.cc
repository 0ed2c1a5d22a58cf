// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/metadata_template.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using testing::HasSubstr;

std::string ValueAt(const std::string& line, uint64_t request, uint64_t seed = 1) {
  const absl::StatusOr<MetadataTemplate> made = MetadataTemplate::Parse({line}, seed);
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return {};
  const wire::Metadata metadata = made->Render(request);
  EXPECT_EQ(metadata.size(), 1u);
  return std::string(metadata.begin()->second);
}

TEST(MetadataTemplate, DrawsAValueForEachRequest) {
  EXPECT_EQ(ValueAt("X-Id: {{index}}", 7), "7");
  EXPECT_EQ(ValueAt("x-id:req {{index}} of {{pick many}}", 8), "req 8 of many");
  EXPECT_EQ(ValueAt("x-id: {{uuid}}", 3), ValueAt("x-id: {{uuid}}", 3)) << "the same in every run";
  EXPECT_NE(ValueAt("x-id: {{uuid}}", 3), ValueAt("x-id: {{uuid}}", 4));
  EXPECT_NE(ValueAt("x-id: {{uuid}}", 3), ValueAt("x-id: {{uuid}}", 3, 2));
  EXPECT_EQ(ValueAt("x-id: {{{{x", 3), "{{x");
  EXPECT_EQ(ValueAt("k-bin: {{bytes 16}}", 3).size(), 16u);
}

TEST(MetadataTemplate, LinesDrawForThemselves) {
  const absl::StatusOr<MetadataTemplate> made =
      MetadataTemplate::Parse({"a: {{string 20}}", "b: {{string 20}}"}, 1);
  ASSERT_TRUE(made.ok()) << made.status();
  const wire::Metadata metadata = made->Render(0);
  EXPECT_NE(metadata.Find("a"), metadata.Find("b"));
  EXPECT_FALSE(made->fixed());
}

TEST(MetadataTemplate, FixedValuesAreSentAsTheyAre) {
  const absl::StatusOr<MetadataTemplate> made =
      MetadataTemplate::Parse({"Authorization:  Bearer a:b ", "k-bin: AAEC", "empty:"}, 1);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->fixed());
  const wire::Metadata metadata = made->Render(5);
  EXPECT_EQ(metadata.Find("authorization"), "Bearer a:b");
  EXPECT_EQ(metadata.Find("k-bin"), std::string_view("\0\1\2", 3));
  EXPECT_EQ(metadata.Find("empty"), "");
  EXPECT_TRUE(MetadataTemplate::Parse({}, 1)->fixed());
}

TEST(MetadataTemplate, RefusesWithTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"no colon", "has no colon"},
      {"grpc-x: y", "cannot be sent"},
      {"k: \x01", "cannot be sent"},
      {"k: {{bytes 4}}", "cannot be sent"},
      {"k-bin: %%%", "cannot be sent"},
      {"k-bin: AAEC{{index}}", "cannot be sent"},
      {"k: {{zipf}}", "wrong number of arguments"},
      {"k: {{indx}}", "index"},
      {"k: {{index", "has no end"},
  };
  for (const auto& [line, hint] : cases) {
    const absl::Status status = MetadataTemplate::Parse({line}, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr(hint)) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr(line));
  }
}

TEST(MetadataTemplate, DrawsThePathOfHttp) {
  const auto parse = [](const char* line) {
    return MetadataTemplate::Parse({line}, 1, MetadataTemplate::Rules::kHttp);
  };
  const auto path = parse(":path: /users/{{index}}?page={{pick 2 2}}");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(path->Render(7).Find(":path"), "/users/7?page=2");
  for (const char* line :
       {":path: users", ":path: /a b", ":path: /{{pick a#b}}", ":path: /{{bytes 3}}", ":path: /\"x\""})
    EXPECT_TRUE(absl::IsInvalidArgument(parse(line).status())) << line;
  EXPECT_FALSE(MetadataTemplate::Parse({":path: /x"}, 1).ok()) << "gRPC's is its own";
}

TEST(MetadataTemplate, OfHttpTakesWhatHttpAllows) {
  const auto made = MetadataTemplate::Parse(
      {"Content-Type: application/json", "host: other", "X_1.2~: {{index}}", "x-bin: not base64!"}, 1,
      MetadataTemplate::Rules::kHttp);
  ASSERT_TRUE(made.ok()) << made.status();
  const wire::Metadata fields = made->Render(5);
  EXPECT_EQ(fields.Find("content-type"), "application/json");
  EXPECT_EQ(fields.Find("host"), "other");
  EXPECT_EQ(fields.Find("x_1.2~"), "5");
  EXPECT_EQ(fields.Find("x-bin"), "not base64!");
  for (const char* line :
       {"content-length: 5", "Connection: close", "transfer-encoding: chunked", ":method: PUT",
        "te: trailers", "a b: c", "x: a\r\nb: c", "x: \x01", "x: {{bytes 4}}"}) {
    const absl::Status status = MetadataTemplate::Parse({line}, 1, MetadataTemplate::Rules::kHttp).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << line;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("cannot be sent")) << line;
  }
}

}  // namespace
}  // namespace curtail
