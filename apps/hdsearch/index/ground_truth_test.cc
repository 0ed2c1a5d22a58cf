// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/index/ground_truth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "curtail/base/temp_dir_testing.h"

namespace curtail::hdsearch {
namespace {

TEST(BruteForce, EqualsSortingAllDistances) {
  const DataSpec corpus = *DataSpec::Parse("synthetic:N=700,D=12,seed=3");
  const auto queries = LoadQueries(*DefaultQueries(corpus), 5), rows = LoadQueries(corpus, 700);
  const auto truth = BruteForce(corpus, *queries, 4, 3, true);
  ASSERT_TRUE(truth.ok()) << truth.status();
  ASSERT_EQ(truth->queries(), 5u);
  for (size_t q = 0; q < 5; ++q) {
    std::vector<Neighbor> all;
    for (uint32_t i = 0; i < 700; ++i) {
      all.push_back({BestKernels().floats((*queries)[q].floats().data(), (*rows)[i].floats().data(), 12), i});
    }
    std::sort(all.begin(), all.end());
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(truth->Of(q)[i], all[i].id);
  }
}

TEST(Recall, CountsTheTruthThatWasFound) {
  const std::vector<uint32_t> truth = {1, 2, 3, 4};
  EXPECT_EQ(Recall(truth, std::vector<uint32_t>{4, 9, 1}), 0.5);
  EXPECT_EQ(Recall(truth, std::vector<uint32_t>{}), 0);
  EXPECT_EQ(Recall(truth, truth), 1);
}

TEST(GroundTruthCache, ReadsBackWhatItWroteAndNothingElse) {
  TempDir dir;
  const GroundTruth truth{2, {1, 2, 3, 4, 5, 6}};
  const std::string path = dir.File("below/truth.bin");
  ASSERT_TRUE(WriteGroundTruth(path, truth).ok());
  const auto read = ReadGroundTruth(path, 3, 2);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ids, truth.ids);
  EXPECT_FALSE(ReadGroundTruth(path, 2, 3).ok());
  EXPECT_FALSE(ReadGroundTruth(dir.File("absent"), 3, 2).ok());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_EQ(ReadGroundTruth(path, 3, 2).status().code(), absl::StatusCode::kDataLoss);
}

TEST(GroundTruthCache, ItsNameChangesWithEverythingTheAnswerDependsOn) {
  TempDir dir;
  setenv("XDG_CACHE_HOME", dir.File("cache").c_str(), 1);
  const DataSpec a = *DataSpec::Parse("synthetic:N=5,D=2"), b = *DataSpec::Parse("synthetic:N=6,D=2");
  const std::string path = GroundTruthCachePath(a, b, 10, 3);
  EXPECT_EQ(path.rfind(dir.File("cache") + "/curtail/", 0), 0u) << path;
  EXPECT_EQ(path, GroundTruthCachePath(a, b, 10, 3));
  EXPECT_NE(path, GroundTruthCachePath(b, b, 10, 3));
  EXPECT_NE(path, GroundTruthCachePath(a, a, 10, 3));
  EXPECT_NE(path, GroundTruthCachePath(a, b, 11, 3));
  EXPECT_NE(path, GroundTruthCachePath(a, b, 10, 4));
  const DataSpec file = *DataSpec::Parse(dir.Write("x.npy", "one"));
  const std::string before = GroundTruthCachePath(file, b, 10, 3);
  dir.Write("x.npy", "other");
  EXPECT_NE(before, GroundTruthCachePath(file, b, 10, 3));
}

}  // namespace
}  // namespace curtail::hdsearch
