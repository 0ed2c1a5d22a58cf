// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/index/vector_store.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "curtail/base/temp_dir_testing.h"

namespace curtail::hdsearch {
namespace {

std::unique_ptr<VectorStore> Load(const std::string& text, Shard shard, int threads = 1) {
  auto store = VectorStore::Load(*DataSpec::Parse(text), shard, LoadOptions{threads, true});
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

// 100 rows of 4 bytes; row i is (i, i, i, i).
std::string ByteCorpus(const TempDir& dir) {
  std::string content("\0\0\x08\x02\0\0\0\x64\0\0\0\x04", 12);
  for (char i = 0; i < 100; ++i) content.append(4, i);
  return dir.Write("x.idx", content);
}

TEST(VectorStore, ShardsHoldTheirRowsOnly) {
  TempDir dir;
  const std::string path = ByteCorpus(dir);
  const auto store = Load(path, Shard{1, 3});
  EXPECT_EQ(store->first_row(), 33u);
  EXPECT_EQ(store->rows(), 33u);
  EXPECT_FALSE(store->Holds(32));
  EXPECT_TRUE(store->Holds(33));
  EXPECT_TRUE(store->Holds(65));
  EXPECT_FALSE(store->Holds(66));
  EXPECT_EQ(std::to_integer<int>(store->Row(40)[3]), 40);
}

TEST(VectorStore, LoadsTheSameWithManyThreads) {
  const std::string text = "synthetic:N=1000,D=33,seed=9";
  const auto one = Load(text, Shard{1, 2}, 1), many = Load(text, Shard{1, 2}, 5);
  EXPECT_EQ(std::memcmp(one->Row(500), many->Row(500), 500 * one->shape().row_bytes()), 0);
}

TEST(VectorStore, MoreShardsThanRowsIsAnError) {
  EXPECT_EQ(VectorStore::Load(*DataSpec::Parse("synthetic:N=2,D=3"), Shard{0, 4}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(VectorStore, ScanRanksByteRowsForQueriesOnAndOffTheGrid) {
  TempDir dir;
  const auto store = Load(ByteCorpus(dir), Shard{});
  const std::vector<uint32_t> ids = {10, 12, 50, 11, 99};
  for (const float at : {11.0f, 11.25f}) {
    const QueryVector query = QueryVector::FromFloats(std::vector<float>(4, at));
    EXPECT_EQ(query.bytes().empty(), at != 11.0f);
    for (const Kernels* kernels : AvailableKernels()) {
      TopK best(3);
      store->Scan(*kernels, query, ids, &best);
      const std::vector<Neighbor> found = best.TakeSorted();
      ASSERT_EQ(found.size(), 3u);
      EXPECT_EQ(found[0].id, 11u);
      EXPECT_EQ(found[1].id, at == 11.0f ? 10u : 12u);
      EXPECT_FLOAT_EQ(found[0].distance, 4 * (at - 11) * (at - 11));
    }
  }
}

TEST(QueryVector, BytesOnlyWhenEveryValueIsOne) {
  EXPECT_EQ(QueryVector::FromFloats(std::vector<float>{0, 255, 7}).bytes().size(), 3u);
  for (const float v : {-1.0f, 256.0f, 0.5f}) {
    EXPECT_TRUE(QueryVector::FromFloats(std::vector<float>{v}).bytes().empty()) << v;
  }
}

}  // namespace
}  // namespace curtail::hdsearch
