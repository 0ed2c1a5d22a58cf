// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "curtail/base/strings.h"

namespace curtail {
namespace {

TEST(Config, RoundTripsEveryModel) {
  for (const char* text : {"SIB1", "SIP4", "SDB1-20", "SDP2-50", "AIB1-4", "AIP1-1", "ADB1-4-4", "ADP1-2-3",
                           "FIB1", "FIP2", "FDB1-2", "FDP1-4096", "auto"}) {
    const auto config = Config::Parse(text);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->ToString(), text);
  }
}

TEST(Config, NamesThePools) {
  const auto config = Config::Parse("ADB1-4-8");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->network, 1);
  EXPECT_EQ(config->workers, 4);
  EXPECT_EQ(config->response, 8);
}

TEST(Config, RefusesWhatIsNotOneWithAHint) {
  for (const char* text :
       {"", "S", "SIB", "XIB1", "SXB1", "SIX1", "sib", "SIB0", "SIB-1", "SIB1-2", "SDB1", "SDB1-", "SDB1-0",
        "SDB1-2-3", "SIB4097", "SIB99999999999999999999", "SIB 1", "SIB+1", "SDB1-2 "}) {
    const auto config = Config::Parse(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(std::string(Message(config.status())), testing::HasSubstr("for example SIB1")) << text;
  }
  const auto error = [](const char* text) { return std::string(Message(Config::Parse(text).status())); };
  EXPECT_EQ(error("fdb1-2"), "config \"fdb1-2\": write configs in capitals: FDB1-2");
  EXPECT_THAT(error(""), testing::StartsWith("the config is empty; write auto"));
  EXPECT_THAT(error("SDB"), testing::HasSubstr("SDB needs 2 pool sizes, as in SDB1-16;"));
  EXPECT_THAT(error("SIP"), testing::HasSubstr("SIP needs 1 pool size, as in SIP1;"));
  EXPECT_THAT(error("SIB1-2"), testing::HasSubstr("SIB needs 1 pool size, as in SIB1;"));
}

}  // namespace
}  // namespace curtail
