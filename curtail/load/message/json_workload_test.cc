// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/json_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "curtail/base/strings.h"
#include "message/load_test.pb.h"

namespace curtail {
namespace {

using loadtest::Item;
using testing::HasSubstr;
using testing::StartsWith;

CatalogMethod Seek() {
  return {.path = "/curtail.loadtest.Nasties/Seek",
          .descriptor = loadtest::Item::descriptor()->file()->service(0)->FindMethodByName("Seek")};
}

absl::StatusOr<std::unique_ptr<Workload>> Make(std::string text, std::string choice = "in-turn") {
  return MakeJsonWorkload(Seek(), {.text = std::move(text), .choice = std::move(choice)}, 5);
}

std::string NameOf(const Workload& workload, uint64_t request) {
  Item item;
  EXPECT_TRUE(item.ParseFromString(workload.Request(request)));
  return item.name();
}

// A file that goes with the test.
class TempFile {
 public:
  explicit TempFile(const std::string& text)
      : name_(Join(testing::TempDir(), "json_workload_test.", getpid(), ".jsonl")) {
    std::ofstream(name_, std::ios::binary) << text;
  }
  ~TempFile() { unlink(name_.c_str()); }
  const std::string& name() const { return name_; }

 private:
  const std::string name_;
};

TEST(JsonWorkload, OneObjectIsTheTemplateOfAllRequests) {
  const auto workload = Make(R"({"name": "n{{index}}"})");
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ((*workload)->method(), "/curtail.loadtest.Nasties/Seek");
  EXPECT_EQ(NameOf(**workload, 0), "n0");
  EXPECT_EQ(NameOf(**workload, 12345), "n12345");
  EXPECT_EQ((*workload)->distinct(), 0u);
  EXPECT_EQ((*Make("{} {}"))->distinct(), 2u);
  EXPECT_EQ((*Make("{} {}", "uniform"))->distinct(), 0u);
}

TEST(JsonWorkload, RequestsOfAFileAreTakenInTurn) {
  for (const char* text :
       {"{\"name\": \"a\"}\n{\"name\": \"b{{index}}\"}\n\n{}\n",
        R"([{"name": "a"}, {"name": "b{{index}}"}, {}])", R"({"name":"a"} {"name":"b{{index}}"}{})"}) {
    const TempFile file(text);
    const auto workload = MakeJsonWorkload(Seek(), *ReadJsonFile(file.name()), 5);
    ASSERT_TRUE(workload.ok()) << workload.status();
    std::vector<std::string> names;
    for (uint64_t i = 0; i < 6; ++i) names.push_back(NameOf(**workload, i));
    EXPECT_THAT(names, testing::ElementsAre("a", "b1", "", "a", "b4", "")) << text;
  }
}

TEST(JsonWorkload, AByteOrderMarkIsSkipped) {
  const TempFile file("\xef\xbb\xbf{\"name\": \"a\"}\n");
  const auto workload = MakeJsonWorkload(Seek(), *ReadJsonFile(file.name()), 5);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(NameOf(**workload, 0), "a");
}

TEST(JsonWorkload, AChoicePicksThePopularOnes) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += Join("{\"name\": \"", i, "\"}\n");
  const auto workload = Make(text, "zipf:1");
  ASSERT_TRUE(workload.ok()) << workload.status();
  int first = 0;
  for (uint64_t i = 0; i < 10000; ++i) first += NameOf(**workload, i) == "0";
  EXPECT_NEAR(first / 10000.0, 1 / 5.187, 0.02);  // the harmonic number of 100
  EXPECT_THAT(std::string(Message(Make("{}", "often").status())), HasSubstr("often"));
}

TEST(JsonWorkload, ErrorsNameFileLineAndField) {
  const TempFile file("{\"name\": \"a\"}\n{\"weight\": \"heavy\"}\n");
  const auto workload = MakeJsonWorkload(Seek(), *ReadJsonFile(file.name()), 5);
  EXPECT_EQ(workload.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(Message(workload.status())),
            Join(file.name(), ":2:12: field weight: \"heavy\" is not a valid sint32"));
  const auto absent = ReadJsonFile("/nonexistent/x.json");
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(absent.status())), StartsWith("cannot open /nonexistent/x.json"));
  EXPECT_FALSE(ReadJsonFile(testing::TempDir()).ok());
  for (const char* empty : {"", " \n", "[]"}) {
    EXPECT_THAT(std::string(Message(Make(empty).status())), HasSubstr("there is no request in the JSON text"))
        << empty;
  }
  EXPECT_THAT(std::string(Message(Make("[{}] {}").status())),
              HasSubstr("1:6: more text follows the list of requests"));
  EXPECT_THAT(std::string(Message(Make("[{} {}]").status())), HasSubstr("expected ',' or ']'"));
  EXPECT_EQ(std::string(Message(Make("[{},\n {\"weight\": \"heavy\"}, }").status())),
            "2:13: field weight: \"heavy\" is not a valid sint32");
  EXPECT_THAT(std::string(Message(Make("[{}, {\"weight\": 1]").status())), HasSubstr("expected ',' or '}'"));
  EXPECT_THAT(std::string(Message(Make("[{}, ]").status())), HasSubstr("one comma too many"));
  EXPECT_THAT(std::string(Message(Make("[{}, ").status())), HasSubstr("got the end of the text"));
  EXPECT_THAT(std::string(Message(Make("{}\n7").status())),
              HasSubstr("2:1: expected an object (curtail.loadtest.Item), got a number"));
}

TEST(JsonWorkload, MessagesAreShownAsJson) {
  Item item;
  item.set_name("n\"");
  item.mutable_inner()->set_weight(-3);
  const auto json = ReplyToJson(Seek(), item.SerializeAsString());
  ASSERT_TRUE(json.ok()) << json.status();
  const auto again = Make(*json);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->Request(0), item.SerializeAsString());
  EXPECT_EQ(ReplyToJson(Seek(), "\xff").status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(RequestToJson(Seek(), "").ok());
}

}  // namespace
}  // namespace curtail
