// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/index/hash_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "apps/hdsearch/index/ground_truth.h"
#include "apps/hdsearch/index/hamming.h"
#include "apps/kit/parallel.h"
#include "curtail/base/testing.h"

namespace curtail::hdsearch {
namespace {

std::unique_ptr<HashIndex> Build(const std::string& text, IndexOptions options = {}, int threads = 2) {
  auto index = HashIndex::Build(*DataSpec::Parse(text), options, threads, true);
  EXPECT_TRUE(index.ok()) << index.status();
  return index.ok() ? *std::move(index) : nullptr;
}

// Mean recall@10 of the index with default options over the corpus's own queries.
double MeanRecall(const std::string& text, size_t queries_wanted) {
  const DataSpec corpus = *DataSpec::Parse(text);
  const auto queries = LoadQueries(*DefaultQueries(corpus), queries_wanted);
  EXPECT_TRUE(queries.ok()) << queries.status();
  const auto truth = BruteForce(corpus, *queries, 10, apps::Threads(0), true);
  EXPECT_TRUE(truth.ok()) << truth.status();
  const auto index = Build(text);
  double sum = 0;
  for (size_t q = 0; q < queries->size(); ++q) {
    const std::vector<uint32_t> ids = index->Lookup((*queries)[q].floats(), 10);
    EXPECT_LE(ids.size(), 500u);
    sum += Recall(truth->Of(q), ids);
  }
  return sum / static_cast<double>(queries->size());
}

TEST(HashIndexTest, EstimatesWhatItHolds) {
  const auto corpus = *DataSpec::Parse("synthetic:N=5000,D=32,seed=3");
  const IndexOptions options;
  const auto index = HashIndex::Build(corpus, options, 1, true);
  ASSERT_TRUE(index.ok()) << index.status();
  const double estimate = static_cast<double>(HashIndex::EstimateBytes(5000, options));
  EXPECT_NEAR(estimate / static_cast<double>((*index)->MemoryBytes()), 1, 0.01);
}

TEST(HashIndex, FindsNeighboursInClusteredVectors) {
  EXPECT_GE(MeanRecall("synthetic:N=20000,D=96,seed=11,clusters=50", 200), 0.95);
}

TEST(HashIndex, FindsNeighboursInFashionMnist) {
  // Measured on 2026-11-26: 33 s under asan, for an index of 60,000 images.
  if (kSanitized)
    GTEST_SKIP() << "2026-11-26: the synthetic data of the others is smaller, and takes the same code";
  ASSERT_TRUE(OpenRows(*DataSpec::Parse("fashion-mnist")).ok())
      << "dataset-fashion-mnist is not installed; ./dev test installs it";
  EXPECT_GE(MeanRecall("fashion-mnist", 500), 0.93);
}

TEST(HashIndex, LookupReturnsDistinctImagesAndAsManyAsAskedFor) {
  const std::string text = "synthetic:N=3000,D=20,seed=4";
  const auto index = Build(text, IndexOptions{.probes = 1, .candidates = 1});
  const auto queries = LoadQueries(*DefaultQueries(*DataSpec::Parse(text)), 20);
  for (const QueryVector& query : *queries) {
    for (const size_t k : {1, 10, 600, 3000}) {
      const std::vector<uint32_t> ids = index->Lookup(query.floats(), k);
      EXPECT_EQ(ids.size(), std::min<size_t>(3000, 5 * k));
      EXPECT_EQ(std::set<uint32_t>(ids.begin(), ids.end()).size(), ids.size());
      EXPECT_LT(*std::max_element(ids.begin(), ids.end()), 3000u);
    }
  }
}

TEST(HashIndex, AnImageFindsItself) {
  const std::string text = "synthetic:N=2000,D=50,seed=8";
  const auto index = Build(text);
  const auto images = LoadQueries(*DataSpec::Parse(text), 100);
  for (uint32_t i = 0; i < 100; ++i) {
    const std::vector<uint32_t> ids = index->Lookup((*images)[i].floats(), 1);
    EXPECT_NE(std::find(ids.begin(), ids.end(), i), ids.end()) << i;
  }
}

TEST(HashIndex, IsTheSameWhateverTheThreads) {
  const std::string text = "synthetic:N=2000,D=50,seed=8";
  const auto one = Build(text, {}, 1), many = Build(text, {}, 7);
  const auto queries = LoadQueries(*DefaultQueries(*DataSpec::Parse(text)), 20);
  for (const QueryVector& q : *queries) EXPECT_EQ(one->Lookup(q.floats(), 5), many->Lookup(q.floats(), 5));
}

// Property: lookups share nothing that they write, so concurrent ones equal sequential ones (and
// ThreadSanitizer is content).
TEST(HashIndex, ConcurrentLookupsAgreeStress) {
  const std::string text = "synthetic:N=5000,D=32,seed=2";
  const auto index = Build(text);
  const auto queries = LoadQueries(*DefaultQueries(*DataSpec::Parse(text)), 50);
  std::vector<std::vector<uint32_t>> expected;
  for (const QueryVector& q : *queries) expected.push_back(index->Lookup(q.floats(), 10));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (size_t q = 0; q < queries->size(); ++q)
        wrong += index->Lookup((*queries)[q].floats(), 10) != expected[q];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(HashIndex, TinyAndDegenerateCorporaWork) {
  for (const char* text : {"synthetic:N=1,D=1", "synthetic:N=3,D=2,clusters=1,rank=0"}) {
    const auto index = Build(text);
    EXPECT_EQ(index->Lookup(std::vector<float>(index->dimension(), 0.0f), 1).size(), index->shape().rows);
  }
}

TEST(HashIndex, RefusesImpossibleOptions) {
  const DataSpec corpus = *DataSpec::Parse("synthetic:N=10,D=4");
  for (const IndexOptions& options :
       {IndexOptions{.tables = 0}, IndexOptions{.key_bits = 25}, IndexOptions{.signature_bits = 100},
        IndexOptions{.tables = 64, .key_bits = 8}, IndexOptions{.probes = 0},
        IndexOptions{.candidates = 0}}) {
    EXPECT_EQ(HashIndex::Build(corpus, options, 1, true).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Hamming, EqualsBitByBitCount) {
  std::mt19937_64 rng(7);
  for (const size_t words : {1, 2, 3, 4, 8, 9}) {
    std::vector<uint64_t> codes(20 * words), query(words);
    for (uint64_t& w : codes) w = rng();
    for (uint64_t& w : query) w = rng();
    const std::vector<uint32_t> ids = {19, 0, 7, 7, 3, 1, 2, 4, 5, 6, 8};
    std::vector<uint16_t> distances(ids.size());
    HammingDistances(codes.data(), words, query.data(), ids, distances.data());
    for (size_t i = 0; i < ids.size(); ++i) {
      int expected = 0;
      for (size_t bit = 0; bit < 64 * words; ++bit) {
        expected += ((codes[ids[i] * words + bit / 64] ^ query[bit / 64]) >> (bit % 64)) & 1;
      }
      EXPECT_EQ(distances[i], expected);
    }
  }
}

}  // namespace
}  // namespace curtail::hdsearch
