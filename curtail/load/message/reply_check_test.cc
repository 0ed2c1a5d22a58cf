// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/reply_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Failures = std::map<size_t, std::string>;

Failures Judge(const absl::StatusOr<std::shared_ptr<const ReplyChecks>>& checks, std::string_view reply) {
  Failures failures;
  if (!checks.ok()) return {{0, checks.status().ToString()}};
  (*checks)->Judge(reply, [&](size_t check, std::string_view found) { failures[check] = found; });
  return failures;
}

Failures JudgeBody(std::vector<std::string> texts, std::string_view body) {
  return Judge(ReplyChecks::OfBodies(std::move(texts)), body);
}

TEST(BodyChecks, HoldForWhatTheBodyHas) {
  constexpr char kBody[] =
      R"({"user": {"id": 7, "name": "a red one", "on": true, "none": null}, "items": [[1, 2], {"n": 2.5}], "big": 9007199254740993})";
  EXPECT_THAT(JudgeBody({".user.id == 7", ".user.id == 7.0", ".user.id != 8", ".user.id <= 7", ".user.id>6",
                         R"(.user.name contains "red")", R"(.user.name < "b")", ".user.on == true",
                         ".user.none == null", ".user.gone == null", ".items[0][1] == 2",
                         ".items[1].n >= 2.5", ".items.length == 2", ".user.on", ".items",
                         ".big == 9007199254740993", R"(. contains "a red")"},
                        kBody),
              IsEmpty());
}

TEST(BodyChecks, SayWhatTheyFound) {
  EXPECT_THAT(
      JudgeBody(
          {".id == 7", ".gone > 1", ".name == \"x\"", ".empty", ".zero", ".items[3]", ".id < \"a\"", ".none",
           ".big == 9007199254740992"},
          R"({"id": 8, "name": "y", "empty": "", "zero": 0, "items": [], "none": null, "big": 9007199254740993})"),
      ElementsAre(std::pair(0, "it is 8"), std::pair(1, "it is absent"), std::pair(2, "it is \"y\""),
                  std::pair(3, "it is \"\""), std::pair(4, "it is 0"), std::pair(5, "it is absent"),
                  std::pair(6, "it is 8"), std::pair(7, "it is null"),
                  std::pair(8, "it is 9007199254740993")));
  EXPECT_THAT(JudgeBody({".id == 7", ". contains \"<h2>\""}, "<h1>welcome</h1>"),
              ElementsAre(std::pair(0, "the body is not JSON"),
                          std::pair(1, "the body has no such text in 16 bytes")));
  EXPECT_THAT(JudgeBody({".name == \"\""}, "{\"name\": \"" + std::string(500, 'x') + "\"}")[0],
              HasSubstr("xxx..."));
}

std::string ErrorOf(std::string check) {
  return std::string(Message(ReplyChecks::OfBodies({std::move(check)}).status()));
}

TEST(BodyChecks, AreRefusedWithWhatToWrite) {
  EXPECT_EQ(ErrorOf("id == 7"),
            "check 'id == 7': it must begin with the path of a field, as in .user.id == 7");
  EXPECT_THAT(ErrorOf(".id = 7"), HasSubstr("'= 7' is not a comparison; write ==, !="));
  EXPECT_THAT(ErrorOf(".id == bob"), HasSubstr("write a string in quotes, as \"bob\""));
  EXPECT_THAT(ErrorOf(".id =="), HasSubstr("no value follows =="));
  EXPECT_THAT(ErrorOf(".id == [1]"), HasSubstr("compare with a number"));
  EXPECT_THAT(ErrorOf(".id contains 7"), HasSubstr("contains needs a string"));
  EXPECT_THAT(ErrorOf(".id < true"), HasSubstr("< needs a number or a string"));
  EXPECT_THAT(ErrorOf("."), HasSubstr("name a field"));
  EXPECT_THAT(ErrorOf(".a[x]"), HasSubstr("an index is a number"));
  EXPECT_THAT(ErrorOf(".a..b"), HasSubstr("fields stand behind dots"));
  EXPECT_FALSE(ReplyChecks::OfBodies({}).ok());
}

TEST(ChecksOfLines, LeavesRemarksOut) {
  EXPECT_THAT(ChecksOfLines("# of users\n  .id == 7\r\n\n.name"), ElementsAre(".id == 7", ".name"));
}

// Checks of replies of one type, by a file of its own: no generated code knows them.
class MessageChecks : public testing::Test {
 protected:
  MessageChecks() {
    const std::string file = folder_.Write("shop.proto", R"(syntax = "proto3"; package shop;
      enum Color { GRAY = 0; RED = 1; }
      message Item { string name = 1; double price = 2; }
      message Reply { int64 id = 1; Color color = 2; repeated Item items = 3; Item best = 4; bool on = 5;
                      map<string, int32> counts = 6; }
      service Shop { rpc Get(Item) returns (Reply); })");
    absl::StatusOr<Catalog> catalog = Catalog::FromProtoFiles({file}, {});
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    if (!catalog.ok()) return;
    catalog_.emplace(*std::move(catalog));
    method_ = *catalog_->FindMethod("shop.Shop/Get");
  }
  absl::StatusOr<std::shared_ptr<const ReplyChecks>> Of(std::vector<std::string> texts) {
    return ReplyChecks::OfMessages(std::move(texts), *catalog_, method_);
  }
  std::string ErrorOf(std::string check) { return std::string(Message(Of({std::move(check)}).status())); }

  TempDir folder_;
  std::optional<Catalog> catalog_;
  CatalogMethod method_;
};

// id: 7, color: RED, items: [{name: "tea", price: 2.5}], counts: {"a": 1}
constexpr std::string_view kReply(
    "\x08\x07\x10\x01\x1a\x0e\x0a\x03tea\x11\0\0\0\0\0\0\x04\x40\x32\x05\x0a\x01"
    "a\x10\x01",
    27);

TEST_F(MessageChecks, HoldForWhatTheReplyHas) {
  EXPECT_THAT(
      Judge(Of({".id == 7", ".id == \"7\"", ".color == \"RED\"", ".color == 1", ".items[0].price < 2.6",
                ".items[0].name contains \"e\"", ".items.length == 1", ".counts.length == 1", ".on == false",
                ".best.name == null", ".items[1].name == null", ".id"}),
            kReply),
      IsEmpty());
}

TEST_F(MessageChecks, SayWhatTheyFound) {
  EXPECT_THAT(
      Judge(Of({".id == 8", ".color != \"RED\"", ".on", ".best.price > 1", ".items.length >= 2"}), kReply),
      ElementsAre(std::pair(0, "it is 7"), std::pair(1, "it is \"RED\""), std::pair(2, "it is false"),
                  std::pair(3, "it is absent"), std::pair(4, "it is 1")));
  EXPECT_THAT(Judge(Of({".id == 8"}), "\x08")[0], HasSubstr("not a message of type shop.Reply"));
}

TEST_F(MessageChecks, AreRefusedBeforeTheRun) {
  EXPECT_THAT(ErrorOf(".idd == 7"),
              HasSubstr("check '.idd == 7': shop.Reply has no field \"idd\"; did you mean \"id\"?"));
  EXPECT_THAT(ErrorOf(".items.name == \"x\""), HasSubstr("items is a list: write items[0] or items.length"));
  EXPECT_THAT(ErrorOf(".items"), HasSubstr("items is a list"));
  EXPECT_THAT(ErrorOf(".counts.a == 1"), HasSubstr("counts is a map"));
  EXPECT_THAT(ErrorOf(".best"), HasSubstr("best is a message: name one of its fields"));
  EXPECT_THAT(ErrorOf(".best.name == 7"), HasSubstr("name is a string: write the value in quotes, as \"7\""));
  EXPECT_THAT(ErrorOf(".id == \"x\""), HasSubstr("id is a number"));
  EXPECT_THAT(ErrorOf(".on == 1"), HasSubstr("on is true or false"));
  EXPECT_THAT(ErrorOf(".color == \"REDD\""),
              HasSubstr("shop.Color has no value \"REDD\"; did you mean \"RED\"?"));
  EXPECT_THAT(ErrorOf(". contains \"x\""), HasSubstr("the reply is a message, not text"));
}

}  // namespace
}  // namespace curtail
