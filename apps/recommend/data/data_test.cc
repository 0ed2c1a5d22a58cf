// SPDX-License-Identifier: Apache-2.0
//
// From a data string to ratings: specs, every file format, what is wrong with files, the generator, the
// split.
#include <bzlib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <map>
#include <set>

#include "apps/recommend/data/ratings.h"
#include "apps/recommend/offline.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail::recommend {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Ratings> Read(const std::string& spec, Shard shard = {}) {
  const absl::StatusOr<DataSpec> parsed = DataSpec::Parse(spec);
  if (!parsed.ok()) return parsed.status();
  return ReadRatings(*parsed, shard, ReadOptions{2, true});
}

std::vector<Rating> List(const std::string& spec) {
  const absl::StatusOr<Ratings> ratings = Read(spec);
  EXPECT_TRUE(ratings.ok()) << ratings.status();
  return ratings.ok() ? ratings->list : std::vector<Rating>();
}

const std::vector<Rating> kThree = {{1, 31, 2.5f}, {1, 1029, 3}, {196, 242, 4.5f}};

TEST(DataSpec, SaysWhatWouldBeRight) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "write a file"},
      {"synthetic:users=0", "users must be"},
      {"synthetic:users=10000001", "users must be 1 to 10000000"},
      {"synthetic:items=10000001", "items must be 1 to 10000000"},
      {"synthetic:users=10000000,items=10000000,ratings=1000000001", "ratings must be 1 to 1000000000"},
      {"synthetic:users=4,items=5,ratings=11", "ratings must be 1 to 10"},
      {"synthetic:users=18446744073709551616", "'users=18446744073709551616' is none of"},
      {"synthetic:users=10,", ""},
      {"synthetic:stars=3", "'stars=3' is none of"},
      {"synthetic:noise=-1", "noise must be"},
      {"synthetic:noise=nan", "noise must be"},
      {"synthetic:rank=257", "rank must be"},
      {"csv:ratings.csv", "write csv:FILE,user=COLUMN"},
      {"csv:a,user=u,item=i", "write csv:FILE"},
      {"csv:,user=u,item=i,rating=r", "write csv:FILE"},
  };
  for (const auto& [text, says] : cases) {
    const absl::StatusOr<DataSpec> spec = DataSpec::Parse(text);
    if (says.empty()) {
      EXPECT_FALSE(spec.ok()) << text;  // so few users and the default number of ratings
      continue;
    }
    ASSERT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(Message(spec.status())), HasSubstr(says));
  }
  const DataSpec spec = *DataSpec::Parse("csv:a,b.csv,rating=y,user=s,item=d");
  EXPECT_EQ(spec.path, "a,b.csv");
  EXPECT_EQ(spec.user + spec.item + spec.rating, "sdy");
}

TEST(Ratings, EveryFormatOfMovieLensIsToldByItsContent) {
  const TempDir dir;
  EXPECT_EQ(List(dir.Write("u.data", "196\t242\t4.5\t881250949\n1\t31\t2.5\t-5\r\n1\t1029\t3\t1\n")), kThree);
  EXPECT_EQ(List(dir.Write("any", "196::242::4.5::881250949\n1::31::2.5::1260759144\n1::1029::3::1")),
            kThree);
  EXPECT_EQ(List(dir.Write("x.csv",
                           "userId,movieId,rating,timestamp\n196,242,4.5,1\n1,31,2.5,2\n\n1,1029,3.0,3\n")),
            kThree);
  EXPECT_EQ(List(dir.Write("short", "\xef\xbb\xbfitem,User,RATING\n242,196,4.5\n31,1,2.5\n1029,1,3\n")),
            kThree);
  EXPECT_EQ(List(dir.Write("spark", "196::242::4.5\n1::31::2.5\n1::1029::3\n")), kThree);
}

TEST(Ratings, AByteOrderMarkIsNoPartOfTheFirstRating) {
  const TempDir dir;
  const std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(List(dir.Write("u.data", mark + "196\t242\t4.5\t8\n1\t31\t2.5\t5\n1\t1029\t3\t1\n")), kThree);
  EXPECT_EQ(List(dir.Write("any", mark + "196::242::4.5::8\n1::31::2.5::1\n1::1029::3::1")), kThree);
  EXPECT_EQ(List(dir.Write("alone", mark + "\n196::242::4.5\n1::31::2.5\n1::1029::3")), kThree);
  EXPECT_FALSE(Read(dir.Write("later", "1::31::2.5\n" + mark + "1::1029::3\n")).ok());
  EXPECT_FALSE(Read(dir.Write("twice", mark + mark + "1::31::2.5\n")).ok());
}

TEST(Ratings, FingerprintsAreOfAllDataAndTheSameForEveryShard) {
  const TempDir dir;
  const auto fingerprint = [](const std::string& spec, Shard shard = {}) {
    const absl::StatusOr<Ratings> ratings = Read(spec, shard);
    EXPECT_TRUE(ratings.ok()) << ratings.status();
    return ratings.ok() ? ratings->fingerprint : 0;
  };
  const std::string spec = "synthetic:users=30,items=40,ratings=400";
  ASSERT_TRUE(WriteRatings(spec, dir.File("r.csv")).ok());
  for (const std::string& data : {spec, dir.File("r.csv")}) {
    EXPECT_EQ(fingerprint(data, Shard{0, 2}), fingerprint(data));
    EXPECT_EQ(fingerprint(data, Shard{1, 2}), fingerprint(data));
  }
  for (const char* other : {",seed=2", ",users=31", ",items=41", ",ratings=401", ",rank=5", ",noise=0.5"}) {
    EXPECT_NE(fingerprint(spec + other), fingerprint(spec)) << other;
  }
  const uint64_t plain = fingerprint(dir.Write("plain", "1::2::3\n1::4::5\n"));
  EXPECT_NE(fingerprint(dir.Write("value", "1::2::3\n1::4::4\n")), plain);
  EXPECT_NE(fingerprint(dir.Write("item", "1::2::3\n1::5::5\n")), plain);
  EXPECT_NE(fingerprint(dir.Write("user", "1::2::3\n2::4::5\n")), plain);
  EXPECT_NE(fingerprint(dir.Write("more", "1::2::3\n1::4::5\n2::4::5\n")), plain);
}

TEST(Ratings, AnyCsvIsReadByTheNamesOfItsColumns) {
  const TempDir dir;
  const std::string path =
      dir.Write("a,b.csv",
                "\"\",\"s\",\"the \"\"d\"\"\",note,\"y\"\n\"1\",\"196\",\"242\",\"a,\"\"b\"\"\",4.5\n"
                "2,1,31,,2.5\n3,\"1\",1029,x y,\"3\"\n");
  EXPECT_EQ(List("csv:" + path + ",user=s,item=the \"d\",rating=y"), kThree);
}

TEST(Ratings, CompressionIsToldByTheContentToo) {
  const TempDir dir;
  std::string text = "userId,movieId,rating\n196,242,4.5\n1,31,2.5\n1,1029,3\n";
  const gzFile gz = gzopen(dir.File("ratings").c_str(), "wb");
  gzwrite(gz, text.data(), static_cast<unsigned>(text.size()));
  gzclose(gz);
  std::string packed(1000, '\0');
  unsigned size = 1000;
  ASSERT_EQ(BZ2_bzBuffToBuffCompress(packed.data(), &size, text.data(), static_cast<unsigned>(text.size()), 1,
                                     0, 0),
            BZ_OK);
  EXPECT_EQ(List(dir.File("ratings")), kThree);
  EXPECT_EQ(List(dir.Write("other", packed.substr(0, size))), kThree);
  EXPECT_EQ(Read(dir.Write("cut", packed.substr(0, size / 2))).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Ratings, CorruptLinesAreNamedWithWhatWasExpected) {
  const TempDir dir;
  const std::string csv = "userId,movieId,rating,timestamp\n1,2,3,4\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"1\t2\t3\t4\n1\t2\n", "line 2: want user<TAB>item<TAB>rating<TAB>timestamp, got '1\t2'"},
      {"1\t2\t3\t4\n1\t2\t3\tnoon\n", "line 2: want user<TAB>"},
      {"1\t2\t3\t4\n1\t2\t3\t4\t5\n", "line 2: want user<TAB>"},
      {"1::2::3::4\n\n-1::2::3::4\n", "line 3: want a user number from 0 to 4294967295, got '-1'"},
      {"1::2::3::4\n1::4294967296::3::4\n", "line 2: want a item number"},
      {"1::2::nan::4\n", "line 1: want a rating from -1000000 to 1000000, got 'nan'"},
      {"1::2::1e7::4\n", "want a rating"},
      {"1::2:: 3::4\n", "want a rating"},
      {csv + "1,2,3\n", "line 3: want 4 columns as in the header, got 3"},
      {csv + "1,2,\"3,4\n", "line 3: a quoted field does not end"},
      {csv + "1,2,\"3\"x,4\n", "line 3: want a comma after a quoted field"},
      {csv + "1,2,3,4,5\n", "got 5"},
      {"userId,movieId,stars\n1,2,3\n", "line 1: want user<TAB>item"},
      {"one\x1b[2Jline\n", "got 'one?[2Jline'"},
      {std::string(200, 'x'), "...'"},
      {"userId,movieId,rating\n", "holds no ratings"},
      {"", "holds no ratings"},
  };
  for (const auto& [content, says] : cases) {
    const std::string path = dir.Write("ratings", content);
    const absl::Status status = Read(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << content;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(says)) << content;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(path));
  }
  const std::string path = dir.Write("ratings", csv);
  EXPECT_THAT(std::string(Message(Read("csv:" + path + ",user=u,item=movieId,rating=rating").status())),
              HasSubstr("the header names no column 'u'"));
  EXPECT_EQ(Read(dir.File("nowhere")).status().code(), absl::StatusCode::kNotFound);
}

TEST(Ratings, TheLastRatingOfAPairCounts) {
  const TempDir dir;
  const absl::StatusOr<Ratings> ratings =
      Read(dir.Write("u.data", "7\t8\t1\t9\n7\t9\t2\t9\n7\t8\t5\t1\n7\t8\t3\t2\n"));
  ASSERT_TRUE(ratings.ok()) << ratings.status();
  EXPECT_EQ(ratings->list, (std::vector<Rating>{{7, 8, 3}, {7, 9, 2}}));
  EXPECT_EQ(ratings->duplicates, 2u);
  EXPECT_EQ(ratings->high, 5);
}

TEST(Ratings, ShardsShareThemOutWithoutLossAndKnowTheWholeScale) {
  const std::string spec = "synthetic:users=50,items=60,ratings=900,seed=3";
  const Ratings all = *Read(spec);
  std::map<std::pair<uint32_t, uint32_t>, float> seen;
  for (uint32_t i = 0; i < 4; ++i) {
    const Ratings part = *Read(spec, Shard{i, 4});
    EXPECT_GT(part.list.size(), 150u);
    EXPECT_EQ(part.low, 1);
    EXPECT_EQ(part.high, 5);
    for (const Rating& r : part.list) EXPECT_TRUE(seen.emplace(std::pair(r.user, r.item), r.value).second);
  }
  ASSERT_EQ(seen.size(), all.list.size());
  for (const Rating& r : all.list) EXPECT_EQ(seen.at({r.user, r.item}), r.value);
  // A shard without ratings cannot be served.
  const TempDir dir;
  const absl::Status status =
      Read(dir.Write("one", "1\t2\t3\t4\n"), Shard{Holds(Shard{0, 2}, 1, 2) ? 1u : 0u, 2}).status();
  EXPECT_THAT(std::string(Message(status)), HasSubstr("has no ratings for shard"));
}

TEST(Synthetic, HasTheNumbersAskedForAndNoPairTwice) {
  for (const char* spec :
       {"synthetic", "synthetic:users=3,items=5,ratings=7", "synthetic:users=1,items=1,ratings=1",
        "synthetic:users=40,items=30,ratings=600,rank=0,noise=0"}) {
    const Ratings ratings = *Read(spec);
    EXPECT_EQ(ratings.list.size(), DataSpec::Parse(spec)->synthetic.ratings) << spec;
    EXPECT_EQ(ratings.duplicates, 0u) << spec;
    for (const Rating& r : ratings.list) EXPECT_THAT(r.value, testing::AnyOf(1, 2, 3, 4, 5));
  }
}

TEST(Synthetic, PopularityFallsAsZipfHasIt) {
  const Ratings ratings = *Read("synthetic");
  std::map<uint32_t, int> by_item;
  for (const Rating& r : ratings.list) ++by_item[r.item];
  EXPECT_GT(by_item[1], 10 * by_item[500]);
  EXPECT_GT(by_item.size(), 1600u);
}

TEST(Synthetic, DependsOnTheSeedAndNothingElse) {
  const std::string spec = "synthetic:users=30,items=40,ratings=400,seed=";
  const DataSpec parsed = *DataSpec::Parse(spec + "5");
  EXPECT_EQ(ReadRatings(parsed, {}, {1, true})->list, ReadRatings(parsed, {}, {7, true})->list);
  EXPECT_NE(List(spec + "5"), List(spec + "6"));
}

TEST(Generate, WritesWhatIsReadAgain) {
  const TempDir dir;
  const std::string spec = "synthetic:users=30,items=40,ratings=400";
  ASSERT_TRUE(WriteRatings(spec, dir.File("r.csv")).ok());
  EXPECT_EQ(List(dir.File("r.csv")), List(spec));
  EXPECT_EQ(WriteRatings(spec, dir.File("no/such/folder")).code(), absl::StatusCode::kNotFound);
  // A file with the name that temporary files once had stays.
  dir.Write("s.csv.part", "precious");
  ASSERT_TRUE(WriteRatings(spec, dir.File("s.csv")).ok());
  EXPECT_TRUE(std::filesystem::exists(dir.File("s.csv.part")));
  std::filesystem::create_symlink("/dev/null", dir.File("device"));
  EXPECT_TRUE(WriteRatings(spec, dir.File("device")).ok());
  EXPECT_TRUE(std::filesystem::is_character_file(dir.File("device")));
}

TEST(Estimate, IsOfTheRightSize) {
  const TempDir dir;
  ASSERT_TRUE(WriteRatings("synthetic:users=300,items=400,ratings=9000", dir.File("r.csv")).ok());
  const uint64_t estimate = *EstimateRatings(*DataSpec::Parse(dir.File("r.csv")));
  EXPECT_GT(estimate, 3000u);
  EXPECT_LT(estimate, 27000u);
  EXPECT_FALSE(EstimateRatings(*DataSpec::Parse(dir.File("none"))).ok());
}

}  // namespace
}  // namespace curtail::recommend
