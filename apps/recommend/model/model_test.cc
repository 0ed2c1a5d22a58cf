// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail::recommend {
namespace {

using ::testing::HasSubstr;

Model Small() {
  TrainOptions train;
  train.rank = 3, train.iterations = 2;
  return *TrainModel(*DataSpec::Parse("synthetic:users=12,items=9,ratings=50"), Shard{1, 2}, train,
                     {1, true});
}

void ExpectEqual(const Model& a, const Model& b) {
  EXPECT_EQ(a.shard, b.shard);
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(a.train.rank, b.train.rank);
  EXPECT_EQ(a.train.seed, b.train.seed);
  EXPECT_EQ(a.train.regularization, b.train.regularization);
  EXPECT_EQ(a.matrix.users, b.matrix.users);
  EXPECT_EQ(a.matrix.items, b.matrix.items);
  EXPECT_EQ(a.matrix.by_item, b.matrix.by_item);
  EXPECT_EQ(a.matrix.low, b.matrix.low);
  EXPECT_EQ(a.matrix.high, b.matrix.high);
  EXPECT_EQ(a.factors.mean, b.factors.mean);
  EXPECT_EQ(a.factors.user_bias, b.factors.user_bias);
  EXPECT_EQ(a.factors.item_bias, b.factors.item_bias);
  EXPECT_EQ(a.factors.user_factors, b.factors.user_factors);
  EXPECT_EQ(a.factors.item_factors, b.factors.item_factors);
}

// A header whose checksum is right again after an edit.
std::string Resealed(std::string bytes) {
  const auto sum = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), 104));
  std::memcpy(bytes.data() + 104, &sum, sizeof sum);
  return bytes;
}

std::string Edited(std::string bytes, size_t at, std::string_view with) {
  return bytes.replace(at, with.size(), with);
}

TEST(ModelFile, ComesBackAsItWas) {
  const TempDir dir;
  const Model model = Small();
  EXPECT_NE(model.data, 0u);
  ASSERT_TRUE(WriteModel(model, dir.File("m")).ok());
  const absl::StatusOr<Model> read = ReadModel(dir.File("m"));
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(model, *read);
  // Nothing else is left in the folder.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.File("")), {}), 1);
}

TEST(ModelFile, EveryFlippedByteIsNoticed) {
  const std::string bytes = SerializeModel(Small());
  ASSERT_TRUE(ParseModel(bytes).ok());
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string corrupt = bytes;
    corrupt[at] = static_cast<char>(corrupt[at] ^ 0x10);
    const absl::Status status = ParseModel(corrupt).status();
    // The four bytes after the header's checksum are not used.
    EXPECT_EQ(status.ok(), at >= 108 && at < 112) << at;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(status.ok() ? "" : "at byte ")) << at;
  }
}

TEST(ModelFile, EveryTruncationIsNoticedAndSoIsALongerOne) {
  const std::string bytes = SerializeModel(Small());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const absl::Status status = ParseModel(bytes.substr(0, size)).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.code(), size > 0 ? absl::StatusCode::kDataLoss : absl::StatusCode::kInvalidArgument)
        << size;
  }
  EXPECT_THAT(std::string(Message(ParseModel(bytes + "x").status())), HasSubstr("too long"));
}

TEST(ModelFile, SaysWhatIsWrongAndWhere) {
  const std::string bytes = SerializeModel(Small());
  const std::string ones(8, '\xff');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"hello, I am no model at all", "at byte 0: not a model"},
      {Edited(bytes, 8, std::string_view("\1\0\0\0", 4)),
       "at byte 8: version 1 of the format; this program reads version 2"},
      {Edited(bytes, 12, "\1\2\3\4"), "at byte 12: written on a machine with the other byte order"},
      {Edited(bytes, 30, "x"), "at byte 104: the header's checksum"},
      {Resealed(Edited(bytes, 16, ones.substr(0, 4))), "at byte 16: there is no such shard"},
      {Resealed(Edited(bytes, 24, ones)), "at byte 24: impossible numbers"},
      {Resealed(Edited(bytes, 40, ones)), "at byte 24: impossible numbers"},
      {Resealed(Edited(bytes, 48, ones.substr(0, 4))), "at byte 48: rank is 4294967295"},
      {Resealed(Edited(bytes, 80, ones)), "at byte 80: the mean and the scale"},  // NaN
      {Resealed(Edited(bytes, 40, std::string_view("\0\0\0\x3f\0\0\0\0", 8))), "truncated: ends at byte"},
      {Edited(bytes, 112, ones.substr(0, 4)), "at byte 112: the checksum of the users"},
  };
  for (const auto& [content, says] : cases) {
    EXPECT_THAT(std::string(Message(ParseModel(content).status())), HasSubstr(says));
  }
}

// Checksums keep accidents out; what is left of a model that was made wrong is checked by its meaning.
TEST(ModelFile, ContradictionsUnderRightChecksumsAreRefused) {
  const auto refused = [](auto change, std::string_view says) {
    Model model = Small();
    change(model);
    EXPECT_THAT(std::string(Message(ParseModel(SerializeModel(model)).status())),
                HasSubstr(std::string(says)));
  };
  refused([](Model& m) { std::swap(m.matrix.users[0], m.matrix.users[1]); }, "ids of users do not rise");
  refused([](Model& m) { m.matrix.items[1] = m.matrix.items[0]; }, "ids of items do not rise");
  refused([](Model& m) { m.matrix.by_item.begin[1] = 0; }, "item offsets do not rise");
  refused([](Model& m) { m.matrix.by_item.begin.back() += 1; }, "item offsets do not rise");
  refused([](Model& m) { m.matrix.by_item.begin[1] = ~uint64_t{0}; }, "item offsets do not rise");
  refused([](Model& m) { m.matrix.by_item.index.back() = 12; }, "raters are not users");
  refused([](Model& m) { m.matrix.by_item.value[3] = 6; }, "outside their scale");
  refused([](Model& m) { m.factors.user_factors[4] = std::nanf(""); },
          "user factors hold no sensible numbers");
  refused([](Model& m) { m.factors.item_bias[0] = INFINITY; }, "item biases hold no sensible numbers");
}

TEST(ModelFile, FailuresOfTheFileSystemNameThePath) {
  const TempDir dir;
  const absl::Status missing = ReadModel(dir.File("none")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(missing)), HasSubstr(dir.File("none")));
  EXPECT_FALSE(ReadModel(dir.File("")).ok());  // a folder
  const absl::Status nowhere = WriteModel(Small(), dir.File("no/such/folder"));
  EXPECT_EQ(nowhere.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(nowhere)), HasSubstr("cannot be written"));
  const absl::Status corrupt = ReadModel(dir.Write("bad", "CURTREC")).status();
  EXPECT_THAT(std::string(Message(corrupt)), HasSubstr(dir.File("bad") + ": truncated"));
}

}  // namespace
}  // namespace curtail::recommend
