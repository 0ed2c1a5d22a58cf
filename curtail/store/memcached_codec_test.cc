// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/memcached_codec.h"

#include <gtest/gtest.h>

#include <string>

namespace curtail::memcached {
namespace {

using Kind = Answer::Kind;
using namespace std::string_literals;

std::string GetOf(std::string_view key) {
  std::string out;
  AppendGet(key, &out);
  return out;
}

TEST(Codec, WritesCommandsOfTheMetaProtocol) {
  EXPECT_EQ(GetOf("user1"), "mg user1 v\r\n");
  std::string set, add, del;
  AppendSetHead("user1", 12, false, &set);
  AppendSetHead("user1", 0, true, &add);
  AppendDelete("user1", &del);
  std::string versioned, replace;
  AppendVersionedGet("user1", &versioned);
  AppendReplaceHead("user1", 3, 77, &replace);
  EXPECT_EQ(versioned, "mg user1 v c\r\n");
  EXPECT_EQ(replace, "ms user1 3 C77\r\n");
  EXPECT_EQ(set, "ms user1 12\r\n");
  EXPECT_EQ(add, "ms user1 0 ME\r\n");
  EXPECT_EQ(del, "md user1\r\n");
}

TEST(Codec, KeysThatTextCannotCarryTravelInBase64) {
  EXPECT_EQ(GetOf("a b"), "mg YSBi v b\r\n");
  EXPECT_EQ(GetOf("a\r\n"), "mg YQ0K v b\r\n");
  EXPECT_EQ(GetOf("\0"s), "mg AA== v b\r\n");
  EXPECT_EQ(GetOf("\x7fz"), "mg f3o= v b\r\n");
  EXPECT_EQ(GetOf("\xc3\xa4"), "mg \xc3\xa4 v\r\n");  // UTF-8 is text
}

TEST(Codec, KeysAndValuesHaveMemcachedsLimits) {
  EXPECT_TRUE(CheckKey("k").ok());
  EXPECT_TRUE(CheckKey(std::string(250, 'k')).ok());
  EXPECT_TRUE(CheckKey(std::string(186, ' ')).ok());
  EXPECT_EQ(CheckKey("").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckKey(std::string(251, 'k')).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckKey(std::string(187, ' ')).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(CheckValue(std::string(1 << 20, 'v')).ok());
  EXPECT_EQ(CheckValue(std::string((1 << 20) + 1, 'v')).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Codec, ReadsAnswers) {
  const auto kind = [](std::string_view bytes) {
    const ParsedAnswer parsed = ParseAnswer(bytes);
    EXPECT_EQ(parsed.consumed, bytes.size()) << bytes;
    return parsed.answer.kind;
  };
  EXPECT_EQ(kind("EN\r\n"), Kind::kMiss);
  EXPECT_EQ(kind("NF\r\n"), Kind::kMiss);
  EXPECT_EQ(kind("HD\r\n"), Kind::kDone);
  EXPECT_EQ(kind("HD b\r\n"), Kind::kDone);
  EXPECT_EQ(kind("OK\r\n"), Kind::kDone);
  EXPECT_EQ(kind("NS\r\n"), Kind::kNotStored);
  EXPECT_EQ(kind("EX\r\n"), Kind::kNotStored);
  EXPECT_EQ(ParseAnswer("VA 1 c18446744073709551615 b\r\nx\r\n").answer.version, UINT64_MAX);
  EXPECT_EQ(kind("VA 1 cx\r\nx\r\n"), Kind::kBroken);
  EXPECT_EQ(kind("SERVER_ERROR out of memory storing object\r\n"), Kind::kRefused);
  EXPECT_EQ(kind("CLIENT_ERROR bad command line format\r\n"), Kind::kBroken);
  EXPECT_EQ(kind("ERROR\r\n"), Kind::kBroken);
  EXPECT_EQ(kind("\r\n"), Kind::kBroken);
  EXPECT_EQ(kind("VA x\r\n"), Kind::kBroken);
  EXPECT_EQ(kind("VA 1048577\r\n"), Kind::kBroken);
  EXPECT_EQ(kind("VA 99999999999999999999\r\n"), Kind::kBroken);
  EXPECT_EQ(kind("VA -1\r\n"), Kind::kBroken);
  EXPECT_EQ(kind("VA 2\r\nabXX"), Kind::kBroken);
  EXPECT_EQ(kind("VA 0\r\n\r\n"), Kind::kValue);
}

TEST(Codec, ValuesAreAnyBytes) {
  const std::string value = "a\r\nEN\r\n\0b"s;
  const std::string bytes = "VA 9 b\r\n" + value + "\r\nHD\r\n";
  ASSERT_EQ(value.size(), 9u);
  const ParsedAnswer parsed = ParseAnswer(bytes);
  EXPECT_EQ(parsed.answer.kind, Kind::kValue);
  EXPECT_EQ(parsed.answer.value, value);
  EXPECT_EQ(parsed.consumed, bytes.size() - 4);
}

TEST(Codec, WaitsForTheWholeAnswer) {
  const std::string bytes = "VA 5\r\nhello\r\n";
  for (size_t n = 0; n < bytes.size(); ++n) {
    const ParsedAnswer parsed = ParseAnswer(std::string_view(bytes).substr(0, n));
    EXPECT_EQ(parsed.consumed, 0u) << n;
    EXPECT_GT(parsed.wanted, n);
    EXPECT_LE(parsed.wanted, bytes.size());
  }
  EXPECT_EQ(ParseAnswer("VA 1048576\r\nx").wanted, 12u + 1048576 + 2);
}

TEST(Codec, ALineWithoutEndIsNotWaitedForForever) {
  EXPECT_EQ(ParseAnswer(std::string(2047, 'x')).consumed, 0u);
  const ParsedAnswer parsed = ParseAnswer(std::string(2048, 'x'));
  EXPECT_GT(parsed.consumed, 0u);
  EXPECT_EQ(parsed.answer.kind, Kind::kBroken);
}

}  // namespace
}  // namespace curtail::memcached
