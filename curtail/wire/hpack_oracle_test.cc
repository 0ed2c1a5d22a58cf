// SPDX-License-Identifier: Apache-2.0
//
// HPACK against nghttp2's: the tables of the RFC, and random blocks in both directions.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>

#include "curtail/base/testing.h"
#include "curtail/wire/hpack_testing.h"
#include "curtail/wire/internal/hpack.h"
#include "curtail/wire/internal/hpack_static_table.h"

namespace curtail::wire::internal {
namespace {

TEST(StaticTable, IsThatOfNghttp2AndClassified) {
  std::string block;
  for (int i = 1; i <= 61; ++i) block.push_back(static_cast<char>(0x80 | i));
  HpackDecoder decoder;
  OracleDecoder oracle;
  EXPECT_EQ(DecodeWith(decoder, block), oracle.Decode(block));
  for (const HeaderField& field : kStaticTable) {
    EXPECT_EQ(field.field, FieldOf(field.name)) << field.name;
    EXPECT_TRUE(field.valid) << field.name;
  }
}

TEST(Huffman, DecodesEverySymbolAtEveryOffset) {
  OracleEncoder encoder;
  HpackDecoder decoder;
  for (int symbol = 0; symbol < 256; ++symbol) {
    for (int offset = 0; offset < 8; ++offset) {
      // '0' has five bits, so that 100 of them keep the Huffman code shorter than the raw text.
      const std::string value =
          std::string(100 + offset, '0') + std::string(5, static_cast<char>(symbol)) + "00";
      const Fields fields = {{"x", value}};
      const std::string block = encoder.Encode(fields, 1);
      ASSERT_LT(block.size(), value.size()) << "the oracle did not use Huffman coding";
      ASSERT_EQ(DecodeWith(decoder, block).fields, fields) << symbol << " " << offset;
    }
  }
}

std::string RandomText(std::mt19937& rng, size_t largest) {
  std::string text(rng() % (largest + 1), '\0');
  const bool printable = rng() % 4 != 0;
  for (char& c : text) c = static_cast<char>(printable ? ' ' + rng() % 95 : rng());
  return text;
}

Fields RandomFields(std::mt19937& rng) {
  Fields fields(rng() % 12);
  for (auto& [name, value] : fields) {
    name = rng() % 2 == 0 ? std::string(kStaticTable[rng() % kStaticEntries].name)
                          : "x-" + std::string(rng() % 40, 'k') + std::to_string(rng() % 40);
    value =
        rng() % 3 == 0 ? RandomText(rng, rng() % 50 == 0 ? 5000 : 60) : "value " + std::to_string(rng() % 20);
  }
  return fields;
}

TEST(HpackDecoder, DecodesWhatNghttp2Encodes) {
  std::mt19937 rng(TestSeed());
  for (const uint32_t limit : {4096u, 300u, 20000u}) {
    OracleEncoder encoder(limit);
    HpackDecoder decoder(std::max(limit, 4096u));
    for (int i = 0; i < 4000; ++i) {
      if (rng() % 20 == 0) encoder.SetPeerTableSize(rng() % (limit + 1));
      const Fields fields = RandomFields(rng);
      const Decoded decoded = DecodeWith(decoder, encoder.Encode(fields, rng()));
      ASSERT_TRUE(decoded.ok) << i;
      ASSERT_EQ(decoded.fields, fields) << i;
      ASSERT_LE(decoder.table_bytes(), std::max(limit, 4096u));
    }
  }
}

// A string literal without Huffman coding.
std::string RawString(std::string_view text) {
  const size_t size = text.size();
  if (size < 127) return static_cast<char>(size) + std::string(text);
  const size_t rest = size - 127;
  std::string out = {'\x7f', static_cast<char>(rest % 128 | 128), static_cast<char>(rest / 128)};
  return out.append(text);
}

// The table's memory is a ring that grows; whatever the sizes, no entry may touch another one. The model is the
// list of what was inserted, as far as it fits.
TEST(HpackDecoder, KeepsItsEntriesApart) {
  std::mt19937 rng(TestSeed());
  for (int run = 0; run < 600; ++run) {
    HpackDecoder decoder(8192);
    // Every third run fills the first 512 bytes of memory to the last one with eight entries of 64, and then
    // tries what is a little smaller or larger.
    const bool exact = run % 3 == 0;
    const uint32_t limit = exact ? 8 * (63 + kEntryOverhead) + rng() % 60 : 200 + rng() % 7000;
    ASSERT_TRUE(DecodeWith(decoder, SizeUpdate(limit)).ok);
    const uint32_t largest = limit / (1 + rng() % 8);
    Fields table;  // the newest first
    size_t bytes = 0;
    for (int i = 0; i < 50; ++i) {
      std::string name = "n" + std::to_string(i);
      std::string block = "\x40" + RawString(name);
      if (!table.empty() && rng() % 2 == 0) {
        const size_t age = rng() % table.size();
        name = table[age].first;
        block = age == 0 ? "\x7e" : std::string("\x7f") + static_cast<char>(age - 1);
      }
      size_t size = rng() % largest;
      if (exact) size = 63 - name.size() + (i < 8 ? 0 : rng() % 3) - (i < 8 || rng() % 4 != 0 ? 0 : 50);
      const std::string value(size, static_cast<char>('a' + i % 26));
      ASSERT_EQ(DecodeWith(decoder, block + RawString(value)), (Decoded{true, {{name, value}}}));
      table.insert(table.begin(), {name, value});
      bytes += name.size() + value.size() + kEntryOverhead;
      for (; bytes > limit; table.pop_back()) {
        bytes -= table.back().first.size() + table.back().second.size() + kEntryOverhead;
      }
      ASSERT_EQ(decoder.table_bytes(), bytes);
      std::string all;
      for (size_t age = 0; age < std::min<size_t>(table.size(), 65); ++age)
        all.push_back(static_cast<char>(0x80 | (62 + age)));
      Decoded expected{true, table};
      expected.fields.resize(std::min<size_t>(table.size(), 65));
      ASSERT_EQ(DecodeWith(decoder, all), expected) << run << " " << i;
    }
  }
}

// A representation with mostly sensible contents, some of which no encoder would make.
void AppendRandomField(std::mt19937& rng, std::string* block) {
  switch (rng() % 4) {
    case 0:
      block->push_back(static_cast<char>(0x80 | (1 + rng() % 80)));
      return;
    case 1:
      block->push_back(static_cast<char>(0x41 + rng() % 62));
      break;
    case 2:
      block->append(1, rng() % 2 == 0 ? '\x40' : '\0');
      *block += std::string("\x03k") + std::to_string(10 + rng() % 80);
      break;
    default:
      block->append("\x1f").append(1, static_cast<char>(rng() % 60));
      break;
  }
  const std::string value = RandomText(rng, 125);
  // Random bytes are seldom a valid Huffman string; short ones often enough.
  const bool huffman = value.size() < 4 && rng() % 4 == 0;
  block->append(1, static_cast<char>(value.size() | (huffman ? 0x80 : 0))).append(value);
}

TEST(HpackDecoder, AgreesWithNghttp2OnRandomBlocks) {
  std::mt19937 rng(TestSeed());
  size_t fine = 0, refused = 0;
  for (int run = 0; run < 3000; ++run) {
    HpackDecoder decoder(8192);
    OracleDecoder oracle(8192);
    for (bool ok = true; ok;) {
      std::string block;
      if (rng() % 4 == 0) block += SizeUpdate(rng() % 8 == 0 ? 8192 : rng() % 600);
      for (uint32_t i = rng() % 6; i > 0; --i) AppendRandomField(rng, &block);
      if (rng() % 20 == 0) block.resize(rng() % (block.size() + 1));
      const Decoded decoded = DecodeWith(decoder, block);
      ASSERT_EQ(decoded, oracle.Decode(block)) << run;
      ok = decoded.ok;
      ++(ok ? fine : refused);
      if (!ok) break;
      ASSERT_EQ(decoder.table_bytes(), oracle.table_bytes());
      ASSERT_EQ(decoder.table_entries(), oracle.table_entries());
      if (rng() % 50 == 0) break;
    }
  }
  EXPECT_GT(fine, 3000u);
  EXPECT_GT(refused, 1000u);
}

TEST(HpackEncoder, IsUnderstoodByNghttp2AndByOurDecoder) {
  std::mt19937 rng(TestSeed());
  for (int run = 0; run < 100; ++run) {
    HpackEncoder encoder;
    HpackDecoder decoder(1 << 20);
    OracleDecoder oracle;
    for (int i = 0; i < 60; ++i) {
      if (rng() % 20 == 0) {
        const uint32_t bytes = rng() % 3 == 0 ? rng() % 9000 : rng() % 300;
        oracle.SetMaxTableBytes(bytes);
        encoder.SetPeerTableSize(bytes);
      }
      const Fields fields = RandomFields(rng);
      std::string block;
      encoder.Begin(&block);
      for (const auto& [name, value] : fields) {
        encoder.Encode(name, value,
                       rng() % 2 == 0 ? HpackEncoder::Indexing::kIndex : HpackEncoder::Indexing::kNone,
                       &block);
      }
      const Decoded expected{true, fields};
      ASSERT_EQ(DecodeWith(decoder, block), expected) << run << " " << i;
      ASSERT_EQ(oracle.Decode(block), expected) << run << " " << i;
      ASSERT_EQ(encoder.table_bytes(), oracle.table_bytes());
      ASSERT_EQ(encoder.table_entries(), decoder.table_entries());
    }
  }
}

}  // namespace
}  // namespace curtail::wire::internal
