// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/term/flags.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "curtail/base/temp_dir_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;

TEST(ParseDuration, TakesUnitsAndRefusesTheRest) {
  EXPECT_EQ(*ParseDuration("10s"), std::chrono::seconds(10));
  EXPECT_EQ(*ParseDuration("1m30s"), std::chrono::seconds(90));
  EXPECT_EQ(*ParseDuration("500us"), std::chrono::microseconds(500));
  EXPECT_EQ(*ParseDuration("0"), Nanos(0));
  EXPECT_EQ(*ParseDuration("24h"), std::chrono::hours(24));
  EXPECT_EQ(*DurationOf("--warmup", "0s"), Nanos(0));
  EXPECT_EQ(DurationOf("--slow", "10").status().message(),
            "--slow: '10' is not a duration from 0 to 24h; write 10s, 1m30s or 500us");
  EXPECT_EQ(TimeLimitOf("--timeout", "0s").status().message(),
            "--timeout: 0s is not above 0; write 10s, for example");
  for (const char* bad : {"", "10", "s", "-1s", "25h", "inf", "10 s", "1s2"}) {
    EXPECT_EQ(ParseDuration(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(ParseHex, TakesBytesAndRefusesHalves) {
  EXPECT_EQ(*ParseHex("0a01Ff"), std::string("\x0a\x01\xff"));
  EXPECT_EQ(*ParseHex("0a 01\nff"), std::string("\x0a\x01\xff"));
  EXPECT_EQ(*ParseHex(""), "");
  EXPECT_EQ(*ParseHex("00"), std::string(1, '\0'));
  for (const char* bad : {"0", "0a0", "0x0a", "zz", "0 a"}) EXPECT_FALSE(ParseHex(bad).ok()) << bad;
}

TEST(ParseRates, TakesListsAndThousands) {
  EXPECT_THAT(*ParseRates("50,200,1k,2.5k"), ElementsAre(50, 200, 1000, 2500));
  for (const char* bad : {"", "50,", "0", "-5", "many", "1e999", "nan"})
    EXPECT_FALSE(ParseRates(bad).ok()) << bad;
}

TEST(ParseNumber, TakesThousandsAndMillions) {
  EXPECT_EQ(*ParseNumber("500"), 500);
  EXPECT_EQ(*ParseNumber("2.5k"), 2500);
  EXPECT_EQ(*ParseNumber("1M"), 1e6);
  EXPECT_EQ(*ParseNumber("-5"), -5);
  for (const char* bad : {"", "k", "1kk", "1m", "nan", "1e999", "ten"})
    EXPECT_FALSE(ParseNumber(bad).ok()) << bad;
}

TEST(CommandText, QuotesAndKeepsNoSecrets) {
  EXPECT_EQ(CommandText({"curtail", "load", "a:1", "--data", "{\"x\": \"it's\"}", ""}),
            "curtail load a:1 --data '{\"x\": \"it'\\''s\"}' ''");
  const std::string text = CommandText({"-H", "Authorization: Bearer abc", "--metadata", "x-api-key: abc",
                                        "-Hcookie: abc", "--metadata=x-auth-token: abc", "-H", "x-id: seen"});
  EXPECT_EQ(text.find("abc"), std::string::npos) << text;
  EXPECT_THAT(text, testing::HasSubstr("'Authorization: ***'"));
  EXPECT_THAT(text, testing::HasSubstr("'x-id: seen'"));
}

TEST(CheckWritable, JudgesWhatALinkLeadsTo) {
  const TempDir dir;
  ASSERT_EQ(symlink("later.json", dir.File("latest.json").c_str()), 0);
  EXPECT_TRUE(CheckWritable(dir.File("latest.json")).ok());
  ASSERT_EQ(symlink("absent/later.json", dir.File("lost.json").c_str()), 0);
  EXPECT_THAT(CheckWritable(dir.File("lost.json")).message(), testing::HasSubstr("No such file"));
}

TEST(CheckWritable, AnOpenFileMustBeOpenForWriting) {
  const TempDir dir;
  const std::string file = dir.Write("file", "");
  for (const int mode : {O_RDONLY, O_WRONLY, O_RDWR}) {
    const int fd = open(file.c_str(), mode | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(CheckWritable("/dev/fd/" + std::to_string(fd)).ok(), mode != O_RDONLY) << mode;
    close(fd);
  }
}

}  // namespace
}  // namespace curtail::tool
