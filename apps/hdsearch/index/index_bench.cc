// SPDX-License-Identifier: Apache-2.0
//
// Time, candidates and recall@10 of a candidate lookup over Fashion-MNIST: our index against FAISS's
// IndexBinaryMultiHash over the same signatures (when FAISS was found at configuration).
// docs/adr/0003-faiss.md quotes it.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "apps/hdsearch/index/ground_truth.h"
#include "apps/hdsearch/index/hash_index.h"
#include "apps/kit/parallel.h"

#ifdef CURTAIL_HAVE_FAISS
#include <faiss/IndexBinaryHash.h>
#endif

namespace {

using namespace curtail::hdsearch;

constexpr size_t kQueries = 1000, kK = 10;

struct Fixture {
  DataSpec corpus;
  std::vector<QueryVector> queries;
  GroundTruth truth;
};

// Loaded once, by the first benchmark; nullptr where the data set is not installed.
const Fixture* Data() {
  static const Fixture* const fixture = []() -> const Fixture* {
    auto made = std::make_unique<Fixture>();
    made->corpus = *DataSpec::Parse("fashion-mnist");
    auto queries = LoadQueries(*DefaultQueries(made->corpus), kQueries);
    if (!queries.ok()) return nullptr;
    made->queries = *std::move(queries);
    auto truth = BruteForce(made->corpus, made->queries, kK, curtail::apps::Threads(0), true);
    if (!truth.ok()) return nullptr;
    made->truth = *std::move(truth);
    return made.release();  // lives as long as the program
  }();
  return fixture;
}

// Runs lookup(query) -> ids over all queries in turn and reports what it found.
template <class Lookup>
void Measure(benchmark::State& state, const Fixture& data, const Lookup& lookup) {
  double recall = 0, candidates = 0;
  for (size_t q = 0; q < kQueries; ++q) {
    const std::vector<uint32_t> ids = lookup(data.queries[q]);
    recall += Recall(data.truth.Of(q), ids), candidates += static_cast<double>(ids.size());
  }
  size_t q = 0;
  for (auto _ : state) benchmark::DoNotOptimize(lookup(data.queries[q++ % kQueries]));
  state.counters["recall"] = recall / kQueries;
  state.counters["candidates"] = candidates / kQueries;
}

void OurIndex(benchmark::State& state) {
  if (Data() == nullptr) return state.SkipWithError("Fashion-MNIST is not installed");
  IndexOptions options;
  options.probes = static_cast<int>(state.range(0));
  options.candidates = static_cast<int>(state.range(1));
  const auto index = HashIndex::Build(Data()->corpus, options, curtail::apps::Threads(0), true);
  Measure(state, *Data(), [&](const QueryVector& query) { return (*index)->Lookup(query.floats(), kK); });
}
BENCHMARK(OurIndex)->Args({60, 500})->Args({90, 500})->Args({200, 1000})->Unit(benchmark::kMicrosecond);

void RotateOnly(benchmark::State& state) {
  const size_t d = static_cast<size_t>(state.range(0));
  const Rotation rotation(d, 256, 1);
  const std::vector<float> x(d, 1.0f), mean(d, 0.5f);
  std::vector<float> scratch = rotation.MakeScratch(), out(256);
  for (auto _ : state) {
    rotation.Apply(x.data(), mean.data(), scratch, out.data());
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(RotateOnly)->Arg(784)->Arg(2048);

#ifdef CURTAIL_HAVE_FAISS
constexpr size_t kBits = 256;

// FAISS takes whole signatures, so centring and rotation happen here.
std::vector<uint8_t> Signature(const Rotation& rotation, const float* x, const std::vector<float>& mean,
                               std::vector<float>& scratch) {
  std::vector<float> margins(kBits);
  rotation.Apply(x, mean.data(), scratch, margins.data());
  std::vector<uint8_t> code(kBits / 8);
  for (size_t i = 0; i < kBits; ++i) code[i / 8] |= static_cast<uint8_t>((margins[i] > 0) << (i % 8));
  return code;
}

void FaissMultiHash(benchmark::State& state) {
  if (Data() == nullptr) return state.SkipWithError("Fashion-MNIST is not installed");
  const auto store = VectorStore::Load(Data()->corpus, Shard{}, LoadOptions{curtail::apps::Threads(0), true});
  const size_t rows = (*store)->rows(), d = (*store)->shape().dimension;
  std::vector<float> mean(d);
  for (size_t i = 0; i < rows; ++i) {
    const QueryVector row = (*store)->RowAsQuery(i);
    for (size_t j = 0; j < d; ++j) mean[j] += row.floats()[j] / static_cast<float>(rows);
  }
  const Rotation rotation(d, kBits, 1);
  std::vector<float> scratch = rotation.MakeScratch();
  faiss::IndexBinaryMultiHash index(kBits, 8, static_cast<int>(state.range(0)));
  index.nflip = static_cast<int>(state.range(1));
  for (size_t i = 0; i < rows; ++i) {
    index.add(1, Signature(rotation, (*store)->RowAsQuery(i).floats().data(), mean, scratch).data());
  }
  const faiss::IndexBinary::idx_t k = state.range(2);
  std::vector<int32_t> distances(static_cast<size_t>(k));
  std::vector<faiss::IndexBinary::idx_t> labels(static_cast<size_t>(k));
  Measure(state, *Data(), [&](const QueryVector& query) {
    index.search(1, Signature(rotation, query.floats().data(), mean, scratch).data(), k, distances.data(),
                 labels.data());
    std::vector<uint32_t> ids;
    for (const auto label : labels) {
      if (label >= 0) ids.push_back(static_cast<uint32_t>(label));
    }
    return ids;
  });
}
// Key bits, bits flipped at most, candidates.
BENCHMARK(FaissMultiHash)
    ->Args({11, 1, 500})
    ->Args({11, 2, 500})
    ->Args({14, 2, 500})
    ->Args({9, 1, 500})
    ->Unit(benchmark::kMicrosecond);
#endif

}  // namespace

BENCHMARK_MAIN();
