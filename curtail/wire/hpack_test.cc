// SPDX-License-Identifier: Apache-2.0
//
// HPACK against the examples of RFC 7541, against malformed blocks, and what the encoder promises on top.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curtail/wire/hpack_testing.h"
#include "curtail/wire/internal/hpack.h"
#include "curtail/wire/internal/hpack_static_table.h"
#include "curtail/wire/metadata.h"

namespace curtail::wire::internal {
namespace {

using Indexing = HpackEncoder::Indexing;

// Bytes from hexadecimal digits; spaces are skipped.
std::string Hex(std::string_view digits) {
  std::string bytes;
  int high = -1;
  for (char c : digits) {
    if (c == ' ') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<char>(high * 16 + digit));
      high = -1;
    }
  }
  return bytes;
}

// The dynamic table, newest first, by asking for each index.
Fields TableOf(HpackDecoder& decoder) {
  std::string block;
  for (size_t i = 0; i < decoder.table_entries(); ++i) block.push_back(static_cast<char>(0x80 | (62 + i)));
  const Decoded decoded = DecodeWith(decoder, block);
  EXPECT_TRUE(decoded.ok);
  return decoded.fields;
}

// One block of an example of RFC 7541 appendix C, and what it leaves behind.
struct Step {
  std::string_view hex;
  Fields fields;
  Fields table;
  size_t table_bytes;
};

void CheckSteps(const std::vector<Step>& steps, uint32_t table_limit) {
  HpackDecoder decoder;
  ASSERT_TRUE(DecodeWith(decoder, SizeUpdate(table_limit)).ok);
  for (const Step& step : steps) {
    SCOPED_TRACE(step.hex);
    const Decoded decoded = DecodeWith(decoder, Hex(step.hex));
    EXPECT_TRUE(decoded.ok);
    EXPECT_EQ(decoded.fields, step.fields);
    EXPECT_EQ(TableOf(decoder), step.table);
    EXPECT_EQ(decoder.table_bytes(), step.table_bytes);
  }
}

TEST(HpackDecoder, DecodesTheFieldsOfAppendixC2) {
  CheckSteps({{"400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
               {{"custom-key", "custom-header"}},
               {{"custom-key", "custom-header"}},
               55}},
             4096);
  CheckSteps({{"040c 2f73 616d 706c 652f 7061 7468", {{":path", "/sample/path"}}, {}, 0},
              {"1008 7061 7373 776f 7264 0673 6563 7265 74", {{"password", "secret"}}, {}, 0},
              {"82", {{":method", "GET"}}, {}, 0}},
             4096);
}

// C.3 and C.4 are the same three requests, raw and in Huffman code.
std::vector<Step> Requests(std::array<std::string_view, 3> hex) {
  const Fields::value_type method{":method", "GET"}, host{":authority", "www.example.com"},
      cache{"cache-control", "no-cache"}, custom{"custom-key", "custom-value"};
  return {{hex[0], {method, {":scheme", "http"}, {":path", "/"}, host}, {host}, 57},
          {hex[1], {method, {":scheme", "http"}, {":path", "/"}, host, cache}, {cache, host}, 110},
          {hex[2],
           {method, {":scheme", "https"}, {":path", "/index.html"}, host, custom},
           {custom, cache, host},
           164}};
}

TEST(HpackDecoder, DecodesTheRequestsOfAppendixC3) {
  CheckSteps(
      Requests({"8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", "8286 84be 5808 6e6f 2d63 6163 6865",
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65"}),
      4096);
}

TEST(HpackDecoder, DecodesTheHuffmanRequestsOfAppendixC4) {
  CheckSteps(Requests({"8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", "8286 84be 5886 a8eb 1064 9cbf",
                       "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"}),
             4096);
}

// C.5 and C.6 are the same three responses, with evictions from a table of 256 bytes.
std::vector<Step> Responses(std::array<std::string_view, 3> hex) {
  const Fields::value_type found{":status", "302"}, moved{":status", "307"}, ok{":status", "200"},
      cache{"cache-control", "private"}, date{"date", "Mon, 21 Oct 2013 20:13:21 GMT"},
      later{"date", "Mon, 21 Oct 2013 20:13:22 GMT"}, location{"location", "https://www.example.com"},
      encoding{"content-encoding", "gzip"},
      cookie{"set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"};
  return {{hex[0], {found, cache, date, location}, {location, date, cache, found}, 222},
          {hex[1], {moved, cache, date, location}, {moved, location, date, cache}, 222},
          {hex[2], {ok, cache, later, location, encoding, cookie}, {cookie, encoding, later}, 215}};
}

TEST(HpackDecoder, DecodesTheResponsesOfAppendixC5) {
  CheckSteps(Responses({"4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133"
                        "2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70"
                        "6c65 2e63 6f6d",
                        "4803 3330 37c1 c0bf",
                        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d"
                        "54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049"
                        "5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e"
                        "3d31"}),
             256);
}

TEST(HpackDecoder, DecodesTheHuffmanResponsesOfAppendixC6) {
  CheckSteps(Responses({"4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6"
                        "2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                        "4883 640e ffc1 c0bf",
                        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab"
                        "77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f"
                        "9587 3160 65c0 03ed 4ee5 b106 3d50 07"}),
             256);
}

TEST(HpackDecoder, RefusesMalformedBlocks) {
  const std::pair<const char*, const char*> cases[] = {
      {"index 0", "80"},
      {"index behind the static table", "be"},
      {"name index behind the static table", "7e 01 61"},
      {"plain name index behind the static table", "0f 2f 01 61"},
      {"index cut off", "ff"},
      {"index cut off later", "ff 80 80"},
      {"index of six bytes", "ff 80 80 80 80 80 00"},
      {"index above 32 bits", "ff 83 ff ff ff 0f"},  // 2 without the 33rd bit
      {"literal without name", "40"},
      {"literal without value", "40 01 61"},
      {"name cut off", "40 02 61"},
      {"value cut off", "40 01 61 02 61"},
      {"length cut off", "40 7f"},
      {"length of six bytes", "40 7f 80 80 80 80 80 00 61 01 61"},
      {"length above 32 bits", "40 7f 82 ff ff ff 0f 61 01 61"},  // 1 without the 33rd bit
      {"Huffman end of string", "40 01 61 84 ff ff ff ff"},
      {"Huffman end of string after text", "40 01 61 85 1f ff ff ff ff"},
      {"Huffman padding of zeros", "40 01 61 81 18"},
      {"Huffman padding of eight ones", "40 01 61 82 1f ff"},
      {"Huffman padding of a byte alone", "40 01 61 81 ff"},
      {"Huffman padding of three bytes", "40 01 61 83 ff ff ff"},
      {"Huffman code cut off", "40 01 61 81 fe"},
      {"Huffman name malformed", "40 81 ff 01 61"},
      {"size update above the limit", "3f e2 1f"},
      {"size update cut off", "3f e1"},
      {"size update too long", "3f 80 80 80 80 80 00"},
      {"size update after a field", "82 20"},
      {"size update after a field, text behind it", "82 22 01 61"},
      {"size update after a literal", "00 01 61 01 61 3f 00"},
  };
  for (const auto& [what, hex] : cases) {
    HpackDecoder decoder;
    EXPECT_FALSE(DecodeWith(decoder, Hex(hex)).ok) << what;
    OracleDecoder oracle;
    EXPECT_FALSE(oracle.Decode(Hex(hex)).ok) << what << ": the case itself is wrong";
  }
}

TEST(HpackDecoder, AcceptsWhatIsAlmostMalformed) {
  const std::pair<const char*, Fields> cases[] = {
      {"", {}},
      {"20", {}},
      {"20 3f e1 1f 82", {{":method", "GET"}}},
      {"3f e1 9f 80 80 00 82", {{":method", "GET"}}},  // 4096 in six bytes
      {"0f aa 80 80 80 00 01 61", {{"transfer-encoding", "a"}}},
      {"00 01 61 81 1f", {{"a", "a"}}},
      {"00 01 61 80", {{"a", ""}}},
      {"00 00 00", {{"", ""}}},
  };
  for (const auto& [hex, fields] : cases) {
    SCOPED_TRACE(hex);
    const Decoded expected{true, fields};
    HpackDecoder decoder;
    EXPECT_EQ(DecodeWith(decoder, Hex(hex)), expected);
    OracleDecoder oracle;
    EXPECT_EQ(oracle.Decode(Hex(hex)), expected) << "the case itself is wrong";
  }
}

TEST(HpackDecoder, KeepsTheNameOfAnEvictedEntryForItsSuccessor) {
  HpackDecoder decoder;
  const std::string name(40, 'n');
  ASSERT_TRUE(DecodeWith(decoder, SizeUpdate(100) + "\x40\x28" + name + "\x01v").ok);
  // Its name is that of the entry it evicts; a hundred of them go around the ring of bytes several times.
  for (int i = 0; i < 100; ++i) {
    const std::string value(1 + i % 28, static_cast<char>('a' + i % 26));
    const Decoded decoded =
        DecodeWith(decoder, "\x7e" + std::string(1, static_cast<char>(value.size())) + value);
    ASSERT_TRUE(decoded.ok);
    ASSERT_EQ(decoded.fields, (Fields{{name, value}}));
    ASSERT_EQ(TableOf(decoder), (Fields{{name, value}}));
  }
}

TEST(HpackDecoder, EmptiesTheTableForAnEntryThatIsTooLarge) {
  HpackDecoder decoder;
  const std::string name(40, 'n');
  ASSERT_TRUE(DecodeWith(decoder, SizeUpdate(100) + "\x40\x28" + name + "\x01v").ok);
  const std::string value(29, 'x');
  const Decoded decoded = DecodeWith(decoder, "\x7e\x1d" + value);
  EXPECT_TRUE(decoded.ok);
  EXPECT_EQ(decoded.fields, (Fields{{name, value}}));
  EXPECT_EQ(decoder.table_entries(), 0u);
  EXPECT_EQ(decoder.table_bytes(), 0u);
}

TEST(HpackDecoder, HonoursTheAnnouncedLimit) {
  HpackDecoder small(100);
  EXPECT_TRUE(DecodeWith(small, SizeUpdate(100)).ok);
  EXPECT_FALSE(DecodeWith(small, SizeUpdate(101)).ok);
  HpackDecoder large(65536);
  EXPECT_TRUE(DecodeWith(large, SizeUpdate(65536)).ok);
  EXPECT_FALSE(DecodeWith(large, SizeUpdate(65537)).ok);
}

TEST(HpackDecoder, ClassifiesFieldsWhereverTheyComeFrom) {
  struct Case {
    std::string_view name;
    std::string_view value;
    Field field;
    bool valid;
  };
  using namespace std::literals;
  const Case cases[] = {
      {"x-key", "v", Field::kOther, true},
      {"x-key", "eight or more bytes\twith a tab", Field::kOther, true},
      {"x-key", "eight or more bytes\nwith a line", Field::kOther, false},
      {"x-key", "a\0"sv, Field::kOther, false},
      {"x-key", "0123456\r", Field::kOther, false},
      {"x-key", "\xff\x80 ", Field::kOther, true},
      {"X-key", "v", Field::kOther, false},
      {"x key", "v", Field::kOther, false},
      {"", "v", Field::kReserved, false},
      {":", "v", Field::kUnknownPseudo, false},
      {"::path", "v", Field::kUnknownPseudo, false},
      {":other", "v", Field::kUnknownPseudo, true},
      {":path", "/", Field::kPath, true},
      {"grpc-status", "0", Field::kGrpcStatus, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.name) + "=" + std::string(c.value));
    std::string block = "\x40";
    block.append(1, static_cast<char>(c.name.size())).append(c.name);
    block.append(1, static_cast<char>(c.value.size())).append(c.value);
    block += "\xbe";                                                                           // the entry
    block.append("\x0f\x2f", 2).append(1, static_cast<char>(c.value.size())).append(c.value);  // its name
    int heard = 0;
    HpackDecoder decoder;
    EXPECT_TRUE(decoder.Decode(block, [&](const HeaderField& field) {
      ++heard;
      EXPECT_EQ(field.name, c.name);
      EXPECT_EQ(field.value, c.value);
      EXPECT_EQ(field.field, c.field);
      EXPECT_EQ(field.valid, c.valid);
    }));
    EXPECT_EQ(heard, 3);
  }
}

TEST(HpackDecoder, FindsTheNameValidThoughItsValueIsNot) {
  HpackDecoder decoder;
  bool valid = false;
  EXPECT_TRUE(decoder.Decode(Hex("40 01 61 01 00 7e 01 62"), [&](const HeaderField& f) { valid = f.valid; }));
  EXPECT_TRUE(valid);
}

TEST(Field, KnowsTheNames) {
  const std::pair<std::string_view, Field> cases[] = {
      {":method", Field::kMethod},
      {":scheme", Field::kScheme},
      {":path", Field::kPath},
      {":authority", Field::kAuthority},
      {":status", Field::kStatus},
      {":protocol", Field::kUnknownPseudo},
      {"content-type", Field::kContentType},
      {"te", Field::kTe},
      {"user-agent", Field::kUserAgent},
      {"grpc-status", Field::kGrpcStatus},
      {"grpc-message", Field::kGrpcMessage},
      {"grpc-timeout", Field::kGrpcTimeout},
      {"grpc-encoding", Field::kGrpcEncoding},
      {"grpc-status-details-bin", Field::kGrpcDetails},
      {"grpc-accept-encoding", Field::kReserved},
      {"host", Field::kReserved},
      {"content-length", Field::kContentLength},
      {"connection", Field::kConnectionSpecific},
      {"keep-alive", Field::kConnectionSpecific},
      {"proxy-connection", Field::kConnectionSpecific},
      {"transfer-encoding", Field::kConnectionSpecific},
      {"upgrade", Field::kConnectionSpecific},
      {"traceparent", Field::kOther},
      {"connections", Field::kOther},
  };
  for (const auto& [name, field] : cases) {
    EXPECT_EQ(FieldOf(name), field) << name;
    EXPECT_EQ(IsReservedKey(name), field != Field::kOther) << name;
  }
}

std::string EncodeOne(HpackEncoder& encoder, std::string_view name, std::string_view value,
                      Indexing indexing) {
  std::string out;
  encoder.Encode(name, value, indexing, &out);
  return out;
}

TEST(HpackEncoder, WritesTheFieldsOfAppendixC) {
  HpackEncoder encoder;
  EXPECT_EQ(EncodeOne(encoder, ":method", "GET", Indexing::kNone), Hex("82"));
  EXPECT_EQ(EncodeOne(encoder, ":path", "/sample/path", Indexing::kNone),
            Hex("040c 2f73 616d 706c 652f 7061 7468"));
  EXPECT_EQ(EncodeOne(encoder, "custom-key", "custom-header", Indexing::kIndex),
            Hex("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572"));
  EXPECT_EQ(EncodeOne(encoder, "custom-key", "custom-header", Indexing::kNone), Hex("be"));
  EXPECT_EQ(EncodeOne(encoder, "custom-key", "", Indexing::kNone), Hex("0f2f 00"));
  EXPECT_EQ(encoder.table_bytes(), 55u);
}

TEST(HpackEncoder, FindsEveryStaticEntry) {
  HpackEncoder encoder;
  for (uint32_t i = 1; i <= kStaticEntries; ++i) {
    const HeaderField& field = kStaticTable[i - 1];
    EXPECT_EQ(EncodeOne(encoder, field.name, field.value, Indexing::kIndex),
              std::string(1, static_cast<char>(0x80 | i)));
  }
  EXPECT_EQ(encoder.table_entries(), 0u);
  EXPECT_EQ(encoder.generation(), HpackEncoder().generation());
}

TEST(HpackEncoder, NeverEvicts) {
  HpackEncoder encoder;
  std::vector<std::pair<std::string, std::string>> kept;
  for (int i = 0; i < 1000; ++i) {
    const std::string path = "/package.Service/Method" + std::to_string(i);
    const size_t before = encoder.table_entries();
    const std::string first = EncodeOne(encoder, ":path", path, Indexing::kIndex);
    const bool entered = encoder.table_entries() > before;
    EXPECT_EQ(first[0], entered ? 0x44 : 0x04) << i;
    if (entered) kept.emplace_back(":path", path);
    EXPECT_LE(encoder.table_bytes(), kDefaultTableBytes);
  }
  EXPECT_GT(kept.size(), 60u);
  EXPECT_LT(kept.size(), 75u);
  const uint64_t generation = encoder.generation();
  for (const auto& [name, value] : kept) {
    const std::string bytes = EncodeOne(encoder, name, value, Indexing::kIndex);
    EXPECT_LE(bytes.size(), 2u);
    EXPECT_EQ(static_cast<uint8_t>(bytes[0]) & 0x80, 0x80);
  }
  // An entry that is small enough still goes in; a larger one leaves the rest alone.
  EncodeOne(encoder, "y", std::string(5000, 'y'), Indexing::kIndex);
  EXPECT_EQ(encoder.generation(), generation);
  EXPECT_EQ(encoder.table_entries(), kept.size());
}

TEST(HpackEncoder, RaisesTheGenerationWhenEncodingsMayChange) {
  HpackEncoder encoder;
  uint64_t last = encoder.generation();
  EncodeOne(encoder, "x-a", "1", Indexing::kNone);
  EXPECT_EQ(encoder.generation(), last) << "a plain literal";
  EncodeOne(encoder, "x-a", "1", Indexing::kIndex);
  EXPECT_GT(encoder.generation(), last) << "an insertion";
  last = encoder.generation();
  EncodeOne(encoder, "x-a", "1", Indexing::kIndex);
  EXPECT_EQ(encoder.generation(), last) << "an index";
  encoder.SetPeerTableSize(65536);
  EXPECT_EQ(encoder.generation(), last) << "more than is used";
  EXPECT_FALSE(encoder.pending());
  encoder.SetPeerTableSize(1000);
  EXPECT_GT(encoder.generation(), last) << "a clear";
  EXPECT_EQ(encoder.table_entries(), 0u);
  EXPECT_EQ(EncodeOne(encoder, "x-a", "1", Indexing::kNone), Hex("00 03 78 2d 61 01 31"));
}

TEST(HpackEncoder, StartsTheNextBlockWithSizeUpdates) {
  HpackEncoder encoder;
  std::string out;
  encoder.Begin(&out);
  EXPECT_EQ(out, "");
  encoder.SetPeerTableSize(0);
  EXPECT_TRUE(encoder.pending());
  encoder.Begin(&out);
  EXPECT_EQ(out, Hex("20"));
  EXPECT_FALSE(encoder.pending());
  EXPECT_EQ(EncodeOne(encoder, "a", "b", Indexing::kIndex), Hex("00 01 61 01 62"));
  out.clear();
  // Down and up again between two blocks: the peer hears of both (RFC 7541 4.2).
  encoder.SetPeerTableSize(100);
  encoder.SetPeerTableSize(0);
  encoder.SetPeerTableSize(4096);
  encoder.Begin(&out);
  EXPECT_EQ(out, Hex("20 3f e1 1f"));
  out.clear();
  encoder.SetPeerTableSize(30);
  encoder.Begin(&out);
  EXPECT_EQ(out, Hex("20 3e"));
}

}  // namespace
}  // namespace curtail::wire::internal
