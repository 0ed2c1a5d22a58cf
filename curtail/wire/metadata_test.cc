// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "curtail/wire/session_testing.h"

namespace curtail::wire {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

std::string Format(Nanos timeout) {
  char buffer[12];
  return std::string(FormatTimeout(timeout, buffer));
}

std::string RandomBytes(std::mt19937& rng, size_t largest) {
  std::string bytes(rng() % (largest + 1), '\0');
  for (char& c : bytes) c = static_cast<char>(rng());
  return bytes;
}

TEST(Metadata, KeepsOrderAndFindsTheFirst) {
  Metadata metadata;
  metadata.Add("k", "1");
  metadata.Add("other", "2");
  metadata.Add("k", "3");
  EXPECT_EQ(metadata.size(), 3u);
  EXPECT_EQ(metadata.Find("k"), "1");
  EXPECT_EQ(metadata.Find("absent"), std::nullopt);
  metadata.Clear();
  EXPECT_TRUE(metadata.empty());
}

TEST(Metadata, TakesEntriesOfItselfAndOfOthers) {
  Metadata metadata;
  metadata.Add("First", std::string(100, 'v'));
  // Each view is of the buffer that grows.
  for (int i = 0; i < 20; ++i) metadata.Add(metadata.begin()->first, *metadata.Find("first"));
  Metadata other;
  other.Add("empty", "");
  other.Append(metadata);
  EXPECT_EQ(other.size(), 22u);
  EXPECT_EQ(other.begin()->first, "empty");
  EXPECT_EQ(other.begin()->second, "");
  for (auto at = std::next(other.begin()); at != other.end(); ++at) {
    EXPECT_EQ(at->first, "first");
    EXPECT_EQ(at->second, std::string(100, 'v'));
  }
  const Metadata taken = std::move(other);
  EXPECT_EQ(taken.size(), 22u);
  EXPECT_EQ(taken.bytes(), 8 + 5 + 21 * (8 + 5 + 100u));
}

TEST(Metadata, KeysAreLowerCaseHoweverTheyAreGiven) {
  Metadata metadata;
  metadata.Add("X-Request-Id", "Value");
  EXPECT_EQ(metadata.begin()->first, "x-request-id");
  EXPECT_EQ(metadata.Find("x-request-id"), "Value");
  EXPECT_EQ(metadata.Find("X-REQUEST-id"), "Value");
  EXPECT_EQ(metadata.Find("x-request-i"), std::nullopt);
  EXPECT_EQ(metadata.Find("x-request-ix"), std::nullopt);
}

TEST(Metadata, CheckNamesTheEntryThatMayNotBeSent) {
  const struct {
    const char* key;
    const char* value;
    const char* named;
    const char* why;
  } cases[] = {{"grpc-timeout", "1S", "\"grpc-timeout\"", "gRPC's own"},
               {"TE", "x", "\"te\"", "gRPC's own"},
               {":path", "/", "\":path\"", "gRPC's own"},
               {"content-type", "x", "\"content-type\"", "gRPC's own"},
               {"", "x", "\"\"", "empty"},
               {"sp ace", "x", "\"sp ace\"", "a key has"},
               {"li\nne", "x", "\"li\\nne\"", "a key has"},
               {"x-foo", "two\nlines", "\"x-foo\"", "printable ASCII"},
               {"x-foo", " padded", "\"x-foo\"", "space at an end"}};
  for (const auto& c : cases) {
    Metadata metadata;
    metadata.Add("x-fine", "value");
    metadata.Add("x-fine-bin", "\n\xff");
    EXPECT_TRUE(CheckMetadata(metadata).ok());
    metadata.Add(c.key, c.value);
    const absl::Status status = CheckMetadata(metadata);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.key;
    EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr(c.named), HasSubstr(c.why)));
  }
  Metadata huge;
  huge.Add("x-foo", std::string(64 << 10, 'x'));
  EXPECT_EQ(CheckMetadata(huge).code(), absl::StatusCode::kInvalidArgument);
}

TEST(CustomKey, AcceptsApplicationKeysOnly) {
  for (const char* key : {"x", "trace-bin", "a.b_c-9", "traceparent", "tea"})
    EXPECT_TRUE(IsCustomKey(key)) << key;
  for (const char* key :
       {"", ":path", "grpc-status", "grpc-x", "te", "content-type", "user-agent", "connection", "host",
        "transfer-encoding", "Upper", "sp ace", "n\xc3\xa4", "content-length"}) {
    EXPECT_FALSE(IsCustomKey(key)) << key;
  }
}

TEST(TextValue, RefusesControlBytesAndOuterSpace) {
  for (const char* value : {"", "a", "a b", "~!%"}) EXPECT_TRUE(IsTextValue(value)) << value;
  for (const char* value : {" a", "a ", "a\n", "\x7f", "\xc3\xa4", "\t"})
    EXPECT_FALSE(IsTextValue(value)) << value;
}

// Property: each byte is judged alike, whatever its place and its neighbours.
TEST(TextValue, JudgesEachByteAtEachPlace) {
  for (int byte = 0; byte < 256; ++byte) {
    for (const char neighbour : {'!', '~', 'a'}) {
      for (size_t at = 1; at < 18; ++at) {
        std::string value(19, neighbour);
        value[at] = static_cast<char>(byte);
        EXPECT_EQ(IsTextValue(value), byte >= ' ' && byte <= '~') << byte << " at " << at;
      }
    }
  }
}

TEST(Timeout, ParsesEveryUnit) {
  EXPECT_EQ(ParseTimeout("1n"), Nanos(1));
  EXPECT_EQ(ParseTimeout("20u"), Nanos(microseconds(20)));
  EXPECT_EQ(ParseTimeout("300m"), Nanos(milliseconds(300)));
  EXPECT_EQ(ParseTimeout("5S"), Nanos(seconds(5)));
  EXPECT_EQ(ParseTimeout("2M"), Nanos(seconds(120)));
  EXPECT_EQ(ParseTimeout("3H"), Nanos(hours(3)));
  EXPECT_EQ(ParseTimeout("0n"), Nanos(0));
  EXPECT_EQ(ParseTimeout("99999999n"), Nanos(99'999'999));
}

TEST(Timeout, SaturatesWhatDoesNotFit) { EXPECT_EQ(ParseTimeout("99999999H"), Nanos::max()); }

TEST(Timeout, RefusesAnythingElse) {
  for (const char* text : {"", "1", "S", "-1S", "+1S", "1.5S", "1s", "1 S", "123456789n", "1Sx", "0x1S"}) {
    EXPECT_EQ(ParseTimeout(text), std::nullopt) << text;
  }
}

TEST(Timeout, FormatRoundsUpAndNeverToZero) {
  EXPECT_EQ(Format(Nanos(0)), "1n");
  EXPECT_EQ(Format(Nanos(-5)), "1n");
  EXPECT_EQ(Format(milliseconds(10)), "10000000n");
  EXPECT_EQ(Format(Nanos(99'999'999)), "99999999n");
  EXPECT_EQ(Format(Nanos(100'000'001)), "100001u");
  EXPECT_EQ(Format(seconds(100)), "100000m");
  EXPECT_EQ(Format(Nanos::max()), "2562048H");
}

// Whatever is sent is at least what was meant, and more by less than one unit of its eight digits.
TEST(Timeout, SurvivesTheWire) {
  std::mt19937_64 rng(TestSeed());
  for (int i = 0; i < 10000; ++i) {
    const Nanos meant(static_cast<int64_t>(rng() >> (1 + rng() % 63)) + 1);
    const std::optional<Nanos> got = ParseTimeout(Format(meant));
    ASSERT_TRUE(got) << meant.count();
    ASSERT_GE(*got, meant);
    const double slack = static_cast<double>(got->count()) - static_cast<double>(meant.count());
    if (meant < hours(1000)) {
      ASSERT_LE(slack, static_cast<double>(meant.count()) * 1e-5) << meant.count();
    }
  }
}

TEST(Metadata, ErasesEntriesByKey) {
  Metadata metadata;
  for (const char* key : {"b", "a", "b", "c", "b"}) metadata.Add(key, std::string("of ") + key);
  metadata.EraseIf([](std::string_view key) { return key == "b"; });
  std::string left;
  for (const auto& [key, value] : metadata) left += std::string(key) + "=" + std::string(value) + ";";
  EXPECT_EQ(left, "a=of a;c=of c;");
  metadata.EraseIf([](std::string_view) { return true; });
  EXPECT_TRUE(metadata.empty());
}

TEST(PercentEncoding, EscapesWhatIsNotPrintable) {
  EXPECT_EQ(PercentEncode("plain text!"), "plain text!");
  EXPECT_EQ(PercentEncode("50% \n\xc3\xa4"), "50%25 %0A%C3%A4");
  EXPECT_EQ(PercentDecode("50%25 %0a%C3%A4"), "50% \n\xc3\xa4");
}

TEST(PercentEncoding, KeepsMalformedEscapes) {
  for (const char* text : {"%", "%4", "%zz", "a%g1", "100%"}) EXPECT_EQ(PercentDecode(text), text);
}

TEST(PercentEncoding, SurvivesTheWire) {
  std::mt19937 rng(TestSeed());
  for (int i = 0; i < 2000; ++i) {
    const std::string text = RandomBytes(rng, 40);
    const std::string encoded = PercentEncode(text);
    for (char c : encoded) ASSERT_TRUE(c >= ' ' && c <= '~');
    ASSERT_EQ(PercentDecode(encoded), text);
  }
}

TEST(Base64, EncodesWithoutPaddingAndDecodesEither) {
  EXPECT_EQ(Base64Encode("a"), "YQ");
  EXPECT_EQ(Base64Encode(""), "");
  EXPECT_EQ(Base64Decode("YQ"), "a");
  EXPECT_EQ(Base64Decode("YQ=="), "a");
  EXPECT_EQ(Base64Decode(""), "");
}

TEST(Base64, RefusesOtherCharacters) {
  for (const char* text : {"Y", "YQ=", "YQ===", "Y Q", "Y_-Q", "YQ\n", "=YQ", "YQ.."}) {
    if (std::string_view(text) == "YQ=") continue;  // one pad too few is taken as unpadded
    EXPECT_EQ(Base64Decode(text), std::nullopt) << text;
  }
}

TEST(Base64, SurvivesTheWire) {
  std::mt19937 rng(TestSeed());
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = RandomBytes(rng, 40);
    ASSERT_EQ(Base64Decode(Base64Encode(bytes)), bytes);
  }
}

}  // namespace
}  // namespace curtail::wire
