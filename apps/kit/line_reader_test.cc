// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/line_reader.h"

#include <bzlib.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <random>
#include <string>
#include <vector>

#include "curtail/base/temp_dir_testing.h"

namespace curtail::apps {
namespace {

using Lines = std::vector<std::string>;

std::string Gzip(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Bzip2(const std::string& text) {
  std::string out(text.size() + text.size() / 50 + 1000, '\0');
  unsigned size = static_cast<unsigned>(out.size());
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(text.data()),
                                     static_cast<unsigned>(text.size()), 1, 0, 0),
            BZ_OK);
  out.resize(size);
  return out;
}

std::string Plain(const std::string& text) { return text; }

absl::Status ReadAll(const std::string& path, Lines* lines) {
  absl::StatusOr<std::unique_ptr<LineReader>> reader = LineReader::Open(path);
  if (!reader.ok()) return reader.status();
  std::string_view line;
  for (;;) {
    const absl::StatusOr<bool> more = (*reader)->Next(&line);
    if (!more.ok()) {
      EXPECT_EQ((*reader)->Next(&line).status(), more.status()) << "an error stays";
      return more.status();
    }
    if (!*more) return absl::OkStatus();
    lines->emplace_back(line);
    EXPECT_EQ((*reader)->line_number(), lines->size());
  }
}

Lines MustRead(const std::string& path) {
  Lines lines;
  const absl::Status status = ReadAll(path, &lines);
  EXPECT_TRUE(status.ok()) << status;
  return lines;
}

bool Contains(const absl::Status& status, std::string_view text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

// Each test runs for a file that is plain, gzip and bzip2.
struct Case {
  const char* name;
  std::string (*pack)(const std::string&);
};

class LineReaderOf : public testing::TestWithParam<Case> {
 protected:
  std::string Write(const std::string& text) { return dir_.Write("f", GetParam().pack(text)); }
  TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(Compression, LineReaderOf,
                         testing::Values(Case{"plain", Plain}, Case{"gzip", Gzip}, Case{"bzip2", Bzip2}),
                         [](const auto& info) { return info.param.name; });

TEST_P(LineReaderOf, GivesLinesWithoutTheirEnds) {
  EXPECT_EQ(MustRead(Write("a\n\r\nbb\r\n\nc\rd\n")), (Lines{"a", "", "bb", "", "c\rd"}));
}

TEST_P(LineReaderOf, LastLineNeedsNoEnd) {
  EXPECT_EQ(MustRead(Write("a\nb")), (Lines{"a", "b"}));
  EXPECT_EQ(MustRead(Write("a\nb\n")), (Lines{"a", "b"}));
  EXPECT_EQ(MustRead(Write("a")), (Lines{"a"}));
  EXPECT_EQ(MustRead(Write("\n")), (Lines{""}));
  EXPECT_EQ(MustRead(Write("")), (Lines{}));
}

TEST_P(LineReaderOf, KeepsEveryByte) {
  std::string line;
  for (int i = 0; i < 256; ++i) {
    if (i != '\n') line.push_back(static_cast<char>(i));
  }
  EXPECT_EQ(MustRead(Write(line + "\n" + line)), (Lines{line, line}));
}

TEST_P(LineReaderOf, LinesOfAllLengthsAcrossBufferEnds) {
  const unsigned seed = 20260;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Lines want;
  std::string text;
  for (const size_t length : {0u, 1u, 100u, 65536u, 262143u, 262144u, 1048575u, 1048576u, 2500000u, 3u}) {
    std::string line(length, '\0');
    for (char& c : line) c = static_cast<char>('a' + random() % 26);
    text += line + (random() % 2 == 0 ? "\n" : "\r\n");
    want.push_back(std::move(line));
  }
  const Lines got = MustRead(Write(text));
  EXPECT_TRUE(got == want) << got.size() << " lines";
}

TEST_P(LineReaderOf, RefusesALineThatIsTooLong) {
  const std::string longest(LineReader::kMaxLine, 'x');
  EXPECT_EQ(MustRead(Write("a\n" + longest + "\r\nb")).size(), 3u);
  EXPECT_EQ(MustRead(Write(longest)).size(), 1u);
  for (const char* tail : {"x", "x\nb", "xyz and more"}) {
    Lines lines;
    const absl::Status status = ReadAll(Write("a\n" + longest + tail), &lines);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_TRUE(Contains(status, "line 2")) << status;
    EXPECT_EQ(lines, Lines{"a"});
  }
}

TEST(LineReader, SeveralStreamsAreOneText) {
  const TempDir dir;
  for (const auto pack : {Gzip, Bzip2}) {
    const std::string two = pack("a\nb") + pack("") + pack("c\nd\n");
    EXPECT_EQ(MustRead(dir.Write("two", two)), (Lines{"a", "bc", "d"}));
    EXPECT_EQ(MustRead(dir.Write("padded", two + std::string(512, '\0'))), (Lines{"a", "bc", "d"}));
  }
}

TEST(LineReader, TruncatedCompressionIsDataLossAtEveryLength) {
  const TempDir dir;
  for (const auto pack : {Gzip, Bzip2}) {
    const std::string whole = pack("some text\nand more of it\n");
    for (size_t size = 4; size < whole.size(); ++size) {
      Lines lines;
      const absl::Status status = ReadAll(dir.Write("cut", whole.substr(0, size)), &lines);
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size << " bytes: " << status;
      EXPECT_TRUE(Contains(status, "cut, offset " + std::to_string(size) + ": ")) << status;
    }
  }
}

TEST(LineReader, CorruptCompressionNamesTheOffset) {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i * 7919) + "\n";
  for (const auto pack : {Gzip, Bzip2}) {
    std::string whole = pack(text);
    const size_t at = whole.size() / 2;
    for (size_t i = at; i < at + 64; ++i) whole[i] = static_cast<char>(~whole[i]);
    Lines lines;
    const absl::Status status = ReadAll(dir.Write("bad", whole), &lines);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    const std::string message(status.message());
    const size_t found = message.find("offset ");
    ASSERT_NE(found, std::string::npos) << message;
    EXPECT_GE(std::stoul(message.substr(found + 7)), at) << message;
  }
}

TEST(LineReader, BytesAfterTheLastStreamAreDataLoss) {
  const TempDir dir;
  for (const auto pack : {Gzip, Bzip2}) {
    Lines lines;
    const absl::Status status = ReadAll(dir.Write("tail", pack("a\n") + "no stream"), &lines);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_EQ(lines, Lines{"a"});
  }
}

TEST(LineReader, TextThatBeginsLikeBzip2IsText) {
  const TempDir dir;
  EXPECT_EQ(MustRead(dir.Write("f", "BZh9 is a name\nb\n")), (Lines{"BZh9 is a name", "b"}));
}

TEST(LineReader, SaysWhatIsWrongWithTheFile) {
  const TempDir dir;
  EXPECT_EQ(LineReader::Open(dir.File("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(LineReader::Open(dir.File(".")).status().code(), absl::StatusCode::kInvalidArgument);
  const std::string path = dir.Write("f", "a\n");
  EXPECT_EQ(LineReader::Open(path + "/g").status().code(), absl::StatusCode::kNotFound);
}

TEST(LineReader, SaysHowFarItIs) {
  const TempDir dir;
  const std::string path = dir.Write("f", Gzip("a\nb\nc\n"));
  const absl::StatusOr<std::unique_ptr<LineReader>> reader = LineReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->line_number(), 0u);
  std::string_view line;
  while ((*reader)->Next(&line).value_or(false)) {
  }
  EXPECT_EQ((*reader)->Where(), path + ", line 3");
  EXPECT_EQ((*reader)->offset(), (*reader)->size());
}

}  // namespace
}  // namespace curtail::apps
