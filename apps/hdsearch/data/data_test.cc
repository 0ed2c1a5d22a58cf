// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "apps/hdsearch/data/data_spec.h"
#include "apps/hdsearch/offline.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail::hdsearch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string BigEndian(uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
          static_cast<char>(v)};
}
template <class T>
std::string Bytes(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}
std::string Idx(uint32_t rows, uint32_t height, uint32_t width, std::string_view pixels) {
  return std::string("\0\0\x08\x03", 4) + BigEndian(rows) + BigEndian(height) + BigEndian(width) +
         std::string(pixels);
}
std::string Npy(std::string dict, std::string_view rows) {
  dict += "\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(dict.size()) + '\0' + dict +
         std::string(rows);
}
void WriteGz(const std::string& path, std::string_view content) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}
std::string Slurp(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

absl::StatusOr<std::unique_ptr<RowReader>> Open(const std::string& text) {
  absl::StatusOr<DataSpec> spec = DataSpec::Parse(text);
  if (!spec.ok()) return spec.status();
  return OpenRows(*spec);
}
// Opens and reads everything; the first error of the two.
absl::Status ReadAll(const std::string& text) {
  auto reader = Open(text);
  if (!reader.ok()) return reader.status();
  std::vector<std::byte> rows((*reader)->shape().rows * (*reader)->shape().row_bytes());
  return (*reader)->Read(0, (*reader)->shape().rows, rows.data());
}
std::vector<float> ReadFloats(const std::string& text, size_t first, size_t count) {
  auto reader = Open(text);
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return {};
  std::vector<float> rows(count * (*reader)->shape().dimension);
  const absl::Status status = (*reader)->Read(first, count, reinterpret_cast<std::byte*>(rows.data()));
  EXPECT_TRUE(status.ok()) << status;
  return rows;
}

TEST(Idx, ReadsBytesFromPlainAndGzipInAnyOrder) {
  TempDir dir;
  const std::string content = Idx(3, 1, 2, "abcdef");
  const std::string plain = dir.Write("x-ubyte", content), packed = dir.File("x-ubyte.gz");
  WriteGz(packed, content);
  for (const std::string& path : {plain, packed}) {
    auto reader = Open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->shape().element, Element::kUint8);
    EXPECT_EQ((*reader)->shape().rows, 3u);
    EXPECT_EQ((*reader)->shape().dimension, 2u);
    char row[2];
    for (const size_t i : {2, 0, 1}) {  // onwards, back, onwards
      ASSERT_TRUE((*reader)->Read(i, 1, reinterpret_cast<std::byte*>(row)).ok());
      EXPECT_EQ(row[0], "ace"[i]);
    }
    EXPECT_EQ((*reader)->Read(2, 2, nullptr).code(), absl::StatusCode::kOutOfRange);
  }
}

TEST(Fvecs, ReadsRows) {
  TempDir dir;
  const std::string path = dir.Write(
      "x.fvecs", Bytes<int32_t>({2}) + Bytes<float>({1, 2}) + Bytes<int32_t>({2}) + Bytes<float>({3, 4}));
  EXPECT_THAT(ReadFloats(path, 0, 2), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(ReadFloats(path, 1, 1), ElementsAre(3, 4));
}

TEST(Raw, ReadsRowsOfTheGivenDimension) {
  TempDir dir;
  const std::string path = dir.Write("x.dat", Bytes<float>({1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(ReadFloats("raw:" + path + ",D=3", 1, 1), ElementsAre(4, 5, 6));
}

TEST(Npy, ReadsFloatsAndBytesOfVersionsOneAndTwo) {
  TempDir dir;
  const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
  const std::string rows = Bytes<float>({1, 2, 3, 4});
  EXPECT_THAT(ReadFloats(dir.Write("v1.npy", Npy(dict, rows)), 0, 2), ElementsAre(1, 2, 3, 4));
  const std::string v2 = std::string("\x93NUMPY\x02\x00", 8) + static_cast<char>(dict.size()) +
                         std::string(3, '\0') + dict + rows;
  EXPECT_THAT(ReadFloats(dir.Write("v2.npy", v2), 1, 1), ElementsAre(3, 4));
  const std::string bytes =
      dir.Write("u1.npy", Npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3), }", "abc"));
  EXPECT_EQ((*Open(bytes))->shape().element, Element::kUint8);
  EXPECT_TRUE(ReadAll(bytes).ok());
}

struct BadFile {
  std::string name, content, suffix;
  absl::StatusCode code;
  std::string says;
};

TEST(Files, BadOnesAreRefusedWithFilePlaceAndReason) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const auto corrupt = absl::StatusCode::kDataLoss, invalid = absl::StatusCode::kInvalidArgument;
  const std::vector<BadFile> cases = {
      {"empty-ubyte", "", "", corrupt, "ends early"},
      {"magic.idx", "hello world", "", corrupt, "magic"},
      {"type.idx", std::string("\0\0\x0e\x01", 4) + BigEndian(1) + "12345678", "", invalid, "unsigned bytes"},
      {"short.idx", Idx(3, 1, 2, "abcde"), "", corrupt, "21 bytes, its header announces 22"},
      {"long.idx", Idx(3, 1, 2, "abcdefg"), "", corrupt, "announces 22"},
      {"none.idx", Idx(0, 1, 2, ""), "", corrupt, "no vectors"},
      {"huge.idx", Idx(1, 0xffffffff, 0xffffffff, "x"), "", invalid, "at most"},
      {"empty.fvecs", "", "", corrupt, "empty"},
      {"negative.fvecs", Bytes<int32_t>({-1, 0}), "", corrupt, "dimension -1"},
      {"short.fvecs", Bytes<int32_t>({2}) + Bytes<float>({1}), "", corrupt, "offset 0"},
      {"mixed.fvecs", Bytes<int32_t>({1, 0, 2, 0}), "", corrupt, "row 1, offset 8: dimension 2"},
      {"nan.fvecs", Bytes<int32_t>({2}) + Bytes<float>({1, nan}), "", invalid, "row 0, column 1"},
      {"inf.dat", Bytes<float>({1, 2, 3, -inf}), "raw D=2", invalid, "row 1, column 1"},
      {"odd.dat", Bytes<float>({1, 2, 3}), "raw D=2", corrupt, "the dimension is not 2"},
      {"magic.npy", "abcdefghijkl", "", corrupt, "magic"},
      {"version.npy", std::string("\x93NUMPY\x09\x00\x01\x00", 10), "", corrupt, "version 9"},
      {"type.npy", Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", "12345678"), "",
       invalid, "astype"},
      {"order.npy", Npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "1234"), "", invalid,
       "C order"},
      {"shape.npy", Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234"), "", invalid,
       "two dimensions"},
      {"cut.npy", Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9, 1), }", "1234"), "", corrupt,
       "9 rows of 1"},
  };
  TempDir dir;
  for (const BadFile& bad : cases) {
    std::string text = dir.Write(bad.name, bad.content);
    if (!bad.suffix.empty()) text = "raw:" + text + ",D=2";
    const absl::Status status = ReadAll(text);
    EXPECT_EQ(status.code(), bad.code) << bad.name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.says)) << bad.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.name));
  }
}

TEST(Files, GzipThatIsCutOrDamagedOrTooLongIsDataLoss) {
  TempDir dir;
  std::string pixels(20000, '\0');
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * i >> 3);
  const std::string content = Idx(100, 10, 20, pixels), path = dir.File("x-ubyte.gz");
  WriteGz(path, content);
  ASSERT_TRUE(ReadAll(path).ok());
  const std::string packed = Slurp(path);
  const absl::Status cut =
      ReadAll(dir.Write("cut-ubyte.gz", std::string_view(packed).substr(0, packed.size() / 2)));
  EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss) << cut;
  std::string damaged = packed;
  for (size_t i = packed.size() / 2; i < packed.size() / 2 + 8; ++i) damaged[i] ^= 0x55;
  const absl::Status bad = ReadAll(dir.Write("bad-ubyte.gz", damaged));
  EXPECT_EQ(bad.code(), absl::StatusCode::kDataLoss) << bad;
  WriteGz(path, content + "x");
  EXPECT_THAT(std::string(ReadAll(path).message()), HasSubstr("more data"));
}

TEST(Files, ThatAreNotThereOrNoFilesAreErrors) {
  TempDir dir;
  EXPECT_EQ(Open(dir.File("no.fvecs")).status().code(), absl::StatusCode::kNotFound);
  std::filesystem::create_directory(dir.File("dir.npy"));
  EXPECT_EQ(Open(dir.File("dir.npy")).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DataSpec, RefusesWhatItCannotMean) {
  for (const char* text :
       {"", "images.png", "raw:x.dat", "raw:x.dat,D=0", "raw:,D=3", "synthetic:", "synthetic:N=5",
        "synthetic:N=5,D=0", "synthetic:N=x,D=3", "synthetic:N=5,D=3,sed=1", "synthetic:N=5,D=99999999",
        "synthetic:N=5,D=3,clusters=0"}) {
    EXPECT_EQ(DataSpec::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Shard, PartsCoverAllRowsOnceAndOwnerOfAgrees) {
  for (const uint32_t rows : {1, 3, 4, 7, 1000}) {
    for (const uint32_t count : {1, 2, 3, 4, 7}) {
      size_t next = 0;
      for (uint32_t i = 0; i < count; ++i) {
        const Shard shard{i, count};
        ASSERT_EQ(shard.Begin(rows), next);
        next = shard.End(rows);
        for (size_t row = shard.Begin(rows); row < next; ++row) ASSERT_EQ(OwnerOf(row, rows, count), i);
      }
      ASSERT_EQ(next, rows);
    }
  }
}

TEST(Synthetic, ARowIsTheSameHoweverItIsReached) {
  const std::string spec = "synthetic:N=100,D=40,seed=5,clusters=3";
  const std::vector<float> all = ReadFloats(spec, 0, 100);
  for (const size_t row : {0, 17, 99}) {
    const std::vector<float> one = ReadFloats(spec, row, 1);
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + static_cast<long>(row) * 40)) << row;
  }
  EXPECT_EQ(ReadFloats("synthetic:N=10,D=40,seed=5,clusters=3,first=50", 0, 1), ReadFloats(spec, 50, 1));
  EXPECT_NE(ReadFloats("synthetic:N=100,D=40,seed=6,clusters=3", 0, 100), all);
}

TEST(WriteRows, WhatItWritesReadsBackEqual) {
  TempDir dir;
  const std::string spec = "synthetic:N=50,D=7,seed=2";
  for (const char* name : {"x.fvecs", "x.npy"}) {
    const absl::Status status = WriteRows(spec, dir.File(name));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(ReadFloats(dir.File(name), 0, 50), ReadFloats(spec, 0, 50)) << name;
    EXPECT_FALSE(std::filesystem::exists(dir.File(name) + ".part"));
  }
  EXPECT_EQ(WriteRows(spec, dir.File("x.txt")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteRows(spec, dir.File("no/such/x.npy")).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace curtail::hdsearch
