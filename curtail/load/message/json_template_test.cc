// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/json_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <thread>

#include "curtail/base/strings.h"
#include "message/load_test.pb.h"
#include "message/load_test_proto2.pb.h"

namespace curtail {
namespace {

using loadtest::Item;
using loadtest::Nasty;
using loadtest::Old;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

template <class M = Nasty>
absl::StatusOr<JsonTemplate> Parse(std::string_view json, uint64_t seed = 1) {
  return JsonTemplate::Parse(*M::descriptor(), json, seed);
}

// The error of a text that must be refused.
template <class M = Nasty>
std::string ErrorOf(std::string_view json) {
  const auto parsed = Parse<M>(json);
  EXPECT_FALSE(parsed.ok()) << json;
  if (parsed.ok()) return "accepted";
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << parsed.status();
  return std::string(curtail::Message(parsed.status()));
}

template <class M = Nasty>
M Render(const JsonTemplate& made, uint64_t request = 0) {
  M message;
  EXPECT_TRUE(message.ParseFromString(made.Render(request)));
  return message;
}

template <class M = Nasty>
M RenderText(std::string_view json, uint64_t request = 0) {
  const auto parsed = Parse<M>(json);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? Render<M>(*parsed, request) : M();
}

TEST(JsonTemplate, DrawsTimes) {
  const auto at = [](std::string_view json, uint64_t request) { return RenderText(json, request); };
  EXPECT_EQ(at(R"({"at": "{{index}}"})", 7).at().seconds(), 7);
  EXPECT_EQ(at(R"({"lasts": "{{index}}s"})", 7).lasts().seconds(), 7);
  std::set<int64_t> seconds, nanos, lengths;
  for (uint64_t i = 0; i < 200; ++i) {
    const Nasty drawn = at(R"({"at": "{{real 10 12}}", "lasts": "{{pick 0.25s 2s}}"})", i);
    seconds.insert(drawn.at().seconds());
    nanos.insert(drawn.at().nanos());
    lengths.insert(drawn.lasts().seconds() * 1000 + drawn.lasts().nanos() / 1'000'000);
    EXPECT_TRUE(drawn.at().nanos() >= 0 && drawn.at().nanos() < 1'000'000'000) << drawn.at().nanos();
  }
  EXPECT_EQ(seconds, (std::set<int64_t>{10, 11}));
  EXPECT_GT(nanos.size(), 190u);
  EXPECT_EQ(lengths, (std::set<int64_t>{250, 2000}));
  EXPECT_EQ(at(R"({"lasts": "{{uniform -9 -9}}s"})", 0).lasts().seconds(), -9);
}

TEST(JsonTemplate, DrawsWhatAnAnyHolds) {
  const Nasty drawn = RenderText(
      R"({"any": {"weight": "{{uniform 5 5}}", "@type": "type.googleapis.com/curtail.loadtest.Item",
          "name": "n{{index}}"}})",
      3);
  EXPECT_EQ(drawn.any().type_url(), "type.googleapis.com/curtail.loadtest.Item");
  Item item;
  ASSERT_TRUE(drawn.any().UnpackTo(&item));
  EXPECT_EQ(item.name(), "n3");
  EXPECT_EQ(item.weight(), 5);
  google::protobuf::Duration duration;
  ASSERT_TRUE(RenderText(R"({"any": {"@type": "a.b/google.protobuf.Duration", "value": "{{index}}s"}})", 3)
                  .any()
                  .UnpackTo(&duration));
  EXPECT_EQ(duration.seconds(), 3);
}

TEST(JsonTemplate, ReadsProto2) {
  const Old old = RenderText<Old>(
      R"({"name": "n", "number": 0, "closed": "SECOND", "unpacked": [1, 2], "packed": [3, 4],
          "bundle": {"tied": "t"}})");
  EXPECT_TRUE(old.has_number());
  EXPECT_EQ(old.closed(), loadtest::SECOND);
  EXPECT_EQ(old.unpacked(1), 2);
  EXPECT_EQ(old.packed(1), 4);
  EXPECT_EQ(old.bundle().tied(), "t");
  EXPECT_EQ(ErrorOf<Old>(R"({"number": 1})"),
            "1:1: the field name of curtail.loadtest.Old is required and missing");
  EXPECT_THAT(ErrorOf<Old>(R"({"name": "", "closed": 3})"), HasSubstr("3 is not a valid number of the enum"));
  const Old drawn = RenderText<Old>(R"({"name": "{{index}}", "bundle": {"tied": "{{pick knot}}"}})", 5);
  EXPECT_EQ(drawn.bundle().tied(), "knot");
  EXPECT_EQ(drawn.name(), "5");
}

TEST(JsonTemplate, ErrorsNameFieldAndPlace) {
  EXPECT_EQ(ErrorOf("{\n  \"an_item\": {\n    \"weight\": \"abc\"}}"),
            "3:15: field an_item.weight: \"abc\" is not a valid sint32");
  EXPECT_EQ(ErrorOf(R"({"an_int32": 2147483648})"),
            "1:14: field an_int32: 2147483648 is out of the range of int32, -2147483648 to 2147483647");
  EXPECT_EQ(ErrorOf(R"({"items": [{}, {"nam": "x"}]})"),
            "1:17: curtail.loadtest.Item has no field \"nam\"; did you mean \"name\"? There are name, "
            "weight, inner");
  EXPECT_EQ(ErrorOf(R"({"a_colour": 1})"),
            "1:2: curtail.loadtest.Nasty has no field \"a_colour\"; did you mean \"a_color\"?");
  EXPECT_EQ(ErrorOf(R"({"by_number": {"7": {"weight": 1.5}}})"),
            "1:32: field by_number[\"7\"].weight: 1.5 is not a valid sint32");
  EXPECT_EQ(ErrorOf("{\"a_string\": \"\xc3\xa9\", \"a_bool\": 1}"),
            "1:29: field a_bool: 1 is not a valid bool: write true or false");
}

TEST(JsonTemplate, RefusesWhatDoesNotFit) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"a_uint32": -1})", "field a_uint32: -1 is out of the range of uint32"},
      {R"({"a_uint64": 18446744073709551616})", "is out of the range of uint64"},
      {R"({"an_int64": 9223372036854775808})", "is out of the range of int64"},
      {R"({"an_int64": "1e3"})", "\"1e3\" is not a valid int64"},
      {R"({"an_int64": " 1"})", "\" 1\" is not a valid int64"},
      {R"({"an_int32": true})", "true is not a valid int32"},
      {R"({"an_int32": [1]})", "expected int32, got a list"},
      {R"({"an_int32": {}})", "expected int32, got an object"},
      {R"({"a_float": 1e39})", "1e39 is out of the range of float"},
      {R"({"a_double": 1e309})", "1e309 is out of the range of double"},
      {R"({"a_double": "inf"})", "\"inf\" is not a valid double"},
      {R"({"a_double": "0x10"})", "\"0x10\" is not a valid double"},
      {R"({"a_string": 1})", "1 is not a valid string"},
      {R"({"a_bytes": "a*"})", "\"a*\" is not a valid base64"},
      {R"({"a_bytes": "YQ Y"})", "is not a valid base64"},
      {R"({"a_bytes": "YQYQY"})", "is not a valid base64"},
      {R"({"a_bytes": "YQV="})", "is not a valid base64"},
      {R"({"a_bytes": "aYQ=="})", "is not a valid base64"},
      {R"({"a_color": "GREY"})", "did you mean \"GRAY\"? There are GRAY, RED, GREEN, VIOLET"},
      {R"({"a_color": true})", "true is not a valid value of the enum curtail.loadtest.Color"},
      {R"({"an_item": 3})", "field an_item: expected an object (curtail.loadtest.Item), got a number"},
      {R"({"items": {}})", "field items: expected a list, as the field is repeated, got an object"},
      {R"({"counts": []})", "field counts: expected an object, as the field is a map, got a list"},
      {R"({"items": [null]})", "field items[0]: null cannot stand in a list"},
      {R"({"counts": {"a": null}})", "field counts[\"a\"]: null cannot stand in a map"},
      {R"({"by_number": {"x": {}}})", "field by_number: as a key of the map \"x\" is not a valid int64"},
      {R"({"by_flag": {"True": ""}})", "is not a valid bool"},
      {R"({"counts": {"a": 1, "a": 2}})", "field counts[\"a\"]: is given twice"},
      {R"({"an_int32": 1, "anInt32": 2})", "field an_int32: is given twice"},
      {R"({"one_number": 1, "one_text": ""})",
       "field one_text: only one of the oneof one can be given, and one_number is"},
      {R"({"at": "yesterday"})", "field at: \"yesterday\" is not a valid google.protobuf.Timestamp"},
      {R"({"any": {"@type": "type.googleapis.com/none"}})", "is not a valid google.protobuf.Any"},
      {R"({"wrapped": "x"})", "field wrapped: \"x\" is not a valid int64"},
      {"[]", "1:1: expected an object (curtail.loadtest.Nasty), got a list"},
      {"", "got the end of the text"},
  };
  for (const auto& [json, error] : kCases) {
    EXPECT_THAT(ErrorOf(json), AllOf(HasSubstr(error), StartsWith("1:"))) << json;
  }
}

TEST(JsonTemplate, SyntaxErrorsNameThePlace) {
  const std::pair<const char*, const char*> kCases[] = {
      {"{\n \"a_string\" \"x\"}", "2:13: expected ':' after the name \"a_string\""},
      {R"({"a_string": "x",})", "1:18: one comma too many after the last of the members of an object"},
      {R"({"a_string": "x" "a_bool": true})", "1:18: expected ',' or '}' after the members of an object"},
      {R"({a_string: "x"})", "1:2: expected a member's name in double quotes"},
      {R"({"strings": ["x" "y"]})", "1:18: expected ',' or ']' after the elements of a list"},
      {R"({"a_string": "x)", "1:14: a string has no end"},
      {R"({"a_string": "\x"})", "no such escape in a string"},
      {R"({"a_string": "\ud800"})", "1:15: half a surrogate pair"},
      {R"({"a_string": "\ud800\u0041"})", "half a surrogate pair"},
      {R"({"a_string": "\udc00"})", "1:14: half a surrogate pair"},
      {R"({"a_string": "\u12g4"})", "1:19: expected four hexadecimal digits after \\u"},
      {"{\"a_string\": \"\n\"}", "a string holds a line break or control character"},
      {"{\"a_string\": \"\xff\"}", "1:15: a string is not valid UTF-8"},
      {"{\"a_string\": \"\xc0\x80\"}", "a string is not valid UTF-8"},
      {"{\"a_string\": \"\xed\xa0\x80\"}", "a string is not valid UTF-8"},
      {R"({"an_int32": 01})", "1:14: not a number as JSON writes it"},
      {R"({"an_int32": 1.})", "not a number as JSON writes it"},
      {R"({"an_int32": -})", "not a number as JSON writes it"},
      {R"({"an_int32": 1e400})", "1:14: 1e400 is out of the range of double"},
      {R"({"strings": [:"x"]})", "1:14: expected a value, got something that is not a JSON value"},
      {R"({"a_bool": tru})", "1:12: expected true, false or null"},
      {R"({"a_bool": yes})", "expected a value, got something that is not a JSON value"},
      {R"({"a_bool": true)", "expected ',' or '}'"},
      {R"({} {})", "1:4: more text follows the request"},
      {"// x\n{}", "got something that is not a JSON value"},
      {"name: 3", "got something that is not a JSON value"},
  };
  for (const auto& [json, error] : kCases) EXPECT_THAT(ErrorOf(json), HasSubstr(error)) << json;
  EXPECT_THAT(ErrorOf({"{}\0", 3}), HasSubstr("1:3: more text follows the request"));
  EXPECT_THAT(ErrorOf({"{\"a_string\": \"\0\"}", 17}),
              HasSubstr("a string holds a line break or control character"));
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += R"({"inner":)";
  EXPECT_THAT(ErrorOf<Item>(deep), HasSubstr("nested deeper than 100 levels"));
  EXPECT_THAT(ErrorOf(R"({"value": )" + std::string(100000, '[')),
              HasSubstr("nested deeper than 100 levels"));
}

TEST(JsonTemplate, EveryPlaceholderGivesWhatItSays) {
  const auto made = Parse(R"({
    "an_int64": "{{index}}", "an_int32": "{{uniform -3 3}}", "a_double": "{{real -1 1}}", "a_float": "{{real 2 3}}",
    "a_uint64": "{{zipf 1000 0.99}}", "a_uint32": "{{skew 1000 80}}", "a_string": "{{uuid}}", "a_bytes": "{{bytes 9}}",
    "a_color": "{{pick RED GREEN -7}}", "a_bool": "{{pick true false}}", "strings": ["{{string 16}}", "fixed",
    "<{{pick a b}}-{{index}}>", "{{{{index}}"], "an_item": {"weight": "{{uniform -5 5}}"},
    "a_sint64": "{{uniform -9223372036854775808 9223372036854775807}}", "bools": ["{{uniform 0 1}}"],
    "colors": ["{{uniform 0 2}}", "{{pick VIOLET}}"], "counts": {"k": "{{uniform 1 9}}"}, "wrapped": "{{index}}",
    "floats": [1, "{{real 5 6}}", 2], "maybe_number": "{{uniform 0 0}}", "a_fixed32": "{{pick 1e3 7}}"})");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(made->fixed());
  const std::regex uuid("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  const std::regex letters("[0-9A-Za-z]{16}");
  std::map<std::string, std::set<std::string>> seen;
  for (uint64_t i = 0; i < 2000; ++i) {
    const Nasty m = Render(*made, i);
    EXPECT_EQ(m.an_int64(), static_cast<int64_t>(i));
    EXPECT_EQ(m.wrapped().value(), static_cast<int64_t>(i));
    EXPECT_TRUE(m.an_int32() >= -3 && m.an_int32() <= 3);
    EXPECT_TRUE(m.a_double() >= -1 && m.a_double() < 1);
    EXPECT_TRUE(m.a_float() >= 2 && m.a_float() <= 3);
    EXPECT_TRUE(m.a_uint64() >= 1 && m.a_uint64() <= 1000);
    EXPECT_TRUE(m.a_uint32() >= 1 && m.a_uint32() <= 1000);
    EXPECT_TRUE(std::regex_match(m.a_string(), uuid)) << m.a_string();
    EXPECT_EQ(m.a_bytes().size(), 9u);
    EXPECT_TRUE(m.a_color() == loadtest::RED || m.a_color() == loadtest::GREEN ||
                m.a_color() == loadtest::VIOLET);
    EXPECT_TRUE(std::regex_match(m.strings(0), letters)) << m.strings(0);
    EXPECT_EQ(m.strings(1), "fixed");
    EXPECT_THAT(m.strings(2), testing::AnyOf(Join("<a-", i, ">"), Join("<b-", i, ">")));
    EXPECT_EQ(m.strings(3), "{{index}}");
    EXPECT_TRUE(m.an_item().weight() >= -5 && m.an_item().weight() <= 5);
    EXPECT_TRUE(m.counts().at("k") >= 1 && m.counts().at("k") <= 9);
    EXPECT_TRUE(m.floats_size() == 3 && m.floats(0) == 1 && m.floats(1) >= 5 && m.floats(1) <= 6 &&
                m.floats(2) == 2);
    EXPECT_TRUE(m.has_maybe_number() && m.maybe_number() == 0);
    EXPECT_TRUE(m.a_fixed32() == 1000 || m.a_fixed32() == 7);
    EXPECT_EQ(m.colors(1), loadtest::VIOLET);
    seen["int32"].insert(std::to_string(m.an_int32()));
    seen["sint64"].insert(std::to_string(m.a_sint64()));
    seen["uuid"].insert(m.a_string());
    seen["bytes"].insert(m.a_bytes());
    seen["color"].insert(std::to_string(m.a_color()));
    seen["bools"].insert(std::to_string(m.a_bool() * 2 + m.bools(0)));
    seen["colors"].insert(std::to_string(m.colors(0)));
    // A parser of protobuf writes the same again, but for the map's order: nothing is doubled or padded.
    EXPECT_EQ(m.SerializeAsString(), made->Render(i));
  }
  EXPECT_EQ(seen["int32"].size(), 7u);
  EXPECT_EQ(seen["sint64"].size(), 2000u);
  EXPECT_EQ(seen["uuid"].size(), 2000u);
  EXPECT_EQ(seen["bytes"].size(), 2000u);
  EXPECT_EQ(seen["color"].size(), 3u);
  EXPECT_EQ(seen["bools"].size(), 4u);
  EXPECT_EQ(seen["colors"].size(), 3u);
}

TEST(JsonTemplate, UniformIsUniformAndZipfIsNot) {
  const auto made = Parse(R"({"an_int32": "{{uniform 0 9}}", "a_uint32": "{{zipf 1000 1.0}}"})", 42);
  ASSERT_TRUE(made.ok()) << made.status();
  std::map<int, int> uniform;
  std::map<uint32_t, int> zipf;
  constexpr int kRequests = 100000;
  for (uint64_t i = 0; i < kRequests; ++i) {
    const Nasty m = Render(*made, i);
    ++uniform[m.an_int32()];
    ++zipf[m.a_uint32()];
  }
  // Chi-square with 9 degrees of freedom exceeds 33.7 once in 10,000 seeds; this is one seed.
  double chi_square = 0;
  for (int v = 0; v < 10; ++v) chi_square += std::pow(uniform[v] - kRequests / 10.0, 2) / (kRequests / 10.0);
  EXPECT_LT(chi_square, 33.7);
  // 1 / H(1000) = 0.1336.
  EXPECT_NEAR(zipf[1] / double{kRequests}, 0.1336, 0.005);
  EXPECT_NEAR(zipf[2] / double{kRequests}, 0.0668, 0.004);
}

TEST(JsonTemplate, RequestsDependOnTextSeedAndNumberOnly) {
  const char* json =
      R"({"a_string": "{{string 20}}", "an_int32": "{{uniform 0 1000000}}", "a_bytes": "{{bytes 20}}"})";
  const auto one = Parse(json, 7);
  const auto same = Parse(json, 7);
  const auto other = Parse(json, 8);
  ASSERT_TRUE(one.ok() && same.ok() && other.ok());
  std::vector<std::string> expected;
  for (uint64_t i = 0; i < 1000; ++i) expected.push_back(one->Render(i));
  for (uint64_t i = 1000; i-- > 0;) EXPECT_EQ(same->Render(i), expected[i]);
  EXPECT_NE(other->Render(0), expected[0]);
  EXPECT_NE(expected[0], expected[1]);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 1000; ++i) wrong[t] += one->Render(i) != expected[i];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST(JsonTemplate, TheNumberOfARequestBeginsAnewWhereAFieldEnds) {
  const auto made = Parse(R"({"an_int32": "{{index}}", "a_uint32": "{{index}}", "a_string": "{{index}}"})");
  ASSERT_TRUE(made.ok());
  const Nasty m = Render(*made, (uint64_t{1} << 32) + 5);
  EXPECT_EQ(m.an_int32(), 5);
  EXPECT_EQ(m.a_uint32(), 5u);
  EXPECT_EQ(m.a_string(), "4294967301");
}

TEST(JsonTemplate, ZerosAreLeftOutAsProtobufDoes) {
  const auto made =
      Parse(R"({"an_int32": "{{uniform 0 0}}", "a_string": "{{string 0}}", "a_double": "{{pick 0}}"})");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->Render(3), "");
}

TEST(JsonTemplate, RefusesWrongPlaceholders) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"a_string": "{{uniforn 1 2}}"})",
       "no placeholder is called \"uniforn\"; did you mean \"uniform\"?"},
      {R"({"a_string": "{{}}"})", "no placeholder is called \"\""},
      {R"({"a_string": "x {{index"})", "a placeholder has no end"},
      {R"({"a_string": "{{uniform 1}}"})",
       "{{uniform 1}} is wrong (wrong number of arguments): write {{uniform LOW HIGH}}"},
      {R"({"a_string": "{{uniform 2 1}}"})", "an empty range"},
      {R"({"a_string": "{{uniform a b}}"})", "not integers"},
      {R"({"a_string": "{{real 1 1}}"})", "an empty range"},
      {R"({"a_string": "{{real -1e308 1e308}}"})", "an empty range"},
      {R"({"a_string": "{{real nan 1}}"})", "not numbers"},
      {R"({"a_string": "{{zipf 0 1}}"})", "no such N"},
      {R"({"a_string": "{{zipf 10 -1}}"})", "{{zipf 10 -1}} is wrong"},
      {R"({"a_string": "{{skew 10 200}}"})", "{{skew 10 200}} is wrong"},
      {R"({"a_string": "{{string -1}}"})", "no such length"},
      {R"({"a_string": "{{string 99999999999}}"})", "no such length"},
      {R"({"a_string": "{{pick}}"})", "wrong number of arguments"},
      {R"({"a_string": "{{bytes 3}}"})",
       "field a_string: the values of {{bytes 3}} do not all fit a field of type string"},
      {R"({"an_int32": "{{uuid}}"})", "do not all fit a field of type int32"},
      {R"({"an_int32": "1{{index}}"})", "in a field of type int32 a placeholder must be the whole string"},
      {R"({"an_int32": "{{uniform 0 2147483648}}"})", "do not all fit"},
      {R"({"a_uint64": "{{uniform -1 1}}"})", "do not all fit"},
      {R"({"an_int32": "{{real 0 1}}"})", "do not all fit"},
      {R"({"a_float": "{{real 0 1e39}}"})", "do not all fit"},
      {R"({"an_int32": "{{pick 1 x}}"})", "\"x\" is not a valid int32"},
      {R"({"a_bool": "{{index}}"})", "do not all fit"},
      {R"({"a_bool": "{{uniform 0 2}}"})", "do not all fit"},
      {R"({"a_color": "{{uniform 0 3}}"})",
       "do not all fit the enum curtail.loadtest.Color; write {{pick NAME NAME ...}}"},
      {R"({"a_color": "{{pick RED BLUE}}"})", "\"BLUE\" is not a valid value of the enum"},
      {R"({"a_bytes": "{{string 3}}"})", "write {{bytes N}}"},
      {R"({"counts": {"{{index}}": 1}})", "the key of a map cannot be a placeholder"},
      {R"({"at": "2026-01-{{uniform 10 28}}T00:00:00Z"})",
       "field at: write a Timestamp with placeholders as seconds since 1970"},
      {R"({"at": "{{uniform 0 999999999999}}"})", "are not all seconds of a google.protobuf.Timestamp"},
      {R"({"at": "{{real -1 1}}"})", "fractions must not be negative"},
      {R"({"at": "{{uuid}}"})", "the values of {{uuid}} are not seconds"},
      {R"({"at": "{{pick now}}"})", "\"now\" is not a valid google.protobuf.Timestamp"},
      {R"({"at": {"seconds": "{{index}}"}})", "expected a string, got an object"},
      {R"({"lasts": "{{uniform 1 9}}"})", "field lasts: write a Duration with placeholders as"},
      {R"({"lasts": "{{pick 1s 2s}}s"})", "write a Duration with placeholders as"},
      {R"({"any": {"name": "{{index}}"}})", "field any: an Any needs its type: \"@type\""},
      {R"({"any": {"@type": "x.com/a.B", "name": "{{index}}"}})", "has the type \"a.B\": add the file"},
      {R"({"any": {"@type": "x.com/curtail.loadtest.Item", "nam": "{{index}}"}})",
       "curtail.loadtest.Item has no field \"nam\"; did you mean \"name\"?"},
      {R"({"any": {"@type": "x.com/google.protobuf.Duration", "v": "{{index}}s"}})",
       "an Any of google.protobuf.Duration has it as \"value\""},
      {R"({"any": "{{index}}"})", "expected an object, got a string"},
      {R"({"structure": {"a": "{{index}}"}})", "placeholders cannot stand in a google.protobuf.Struct"},
      {R"({"strings": ["{{string 16777216}}", "{{string 16777216}}", "{{string 16777216}}", "{{string 16777216}}",
          "{{string 1}}"]})",
       "field strings[4]: the placeholders of this message give more than 64 MiB"},
  };
  for (const auto& [json, error] : kCases) {
    EXPECT_THAT(ErrorOf(json), AllOf(HasSubstr(error), ContainsRegex("^[0-9]+:[0-9]+: "))) << json;
  }
  EXPECT_EQ(RenderText(R"({"structure": {"a": "\u007b\u007bindex}}"}})")
                .structure()
                .fields()
                .at("a")
                .string_value(),
            "{{index}}");
}

}  // namespace
}  // namespace curtail
