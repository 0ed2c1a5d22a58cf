// SPDX-License-Identifier: Apache-2.0
//
// Time a row of each distance kernel, over rows that lie in cache (what the instructions cost) and over
// candidates at random in a 60 MB store (what a leaf sees).
#include <benchmark/benchmark.h>

#include <random>
#include <string>

#include "apps/hdsearch/index/kernels.h"
#include "apps/hdsearch/index/vector_store.h"

namespace {

using namespace curtail::hdsearch;

enum class Kind { kFloats, kBytes, kMixed };

void InCache(benchmark::State& state, const Kernels& kernels, Kind kind) {
  const size_t n = static_cast<size_t>(state.range(0));
  constexpr size_t kRows = 8;
  std::mt19937 rng(1);
  std::vector<uint8_t> bytes(n * (kRows + 1));
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(rng());
  const std::vector<float> floats(bytes.begin(), bytes.end());
  size_t row = 0;
  for (auto _ : state) {
    row = row % kRows + 1;
    switch (kind) {
      case Kind::kFloats:
        benchmark::DoNotOptimize(kernels.floats(&floats[0], &floats[row * n], n));
        break;
      case Kind::kBytes:
        benchmark::DoNotOptimize(kernels.bytes(&bytes[0], &bytes[row * n], n));
        break;
      case Kind::kMixed:
        benchmark::DoNotOptimize(kernels.mixed(&floats[0], &bytes[row * n], n));
        break;
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

// A leaf's share of a query: 125 candidates of 15,000 float rows of 1,024 values.
void LeafScan(benchmark::State& state, const Kernels& kernels) {
  const auto spec = DataSpec::Parse("synthetic:N=15000,D=1024,seed=3,rank=0,clusters=10");
  const auto store = VectorStore::Load(*spec, curtail::Shard{}, LoadOptions{1, true});
  std::mt19937 rng(1);
  const QueryVector query = (*store)->RowAsQuery(0);
  std::vector<uint32_t> ids(125);
  for (auto _ : state) {
    state.PauseTiming();
    for (uint32_t& id : ids) id = static_cast<uint32_t>(rng() % 15000);
    state.ResumeTiming();
    TopK best(10);
    (*store)->Scan(kernels, query, ids, &best);
    benchmark::DoNotOptimize(best.TakeSorted());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * ids.size()));
}

void Register() {
  for (const Kernels* k : AvailableKernels()) {
    const std::string name = k->name;
    benchmark::RegisterBenchmark(("floats/" + name).c_str(), InCache, *k, Kind::kFloats)->Arg(784)->Arg(2048);
    benchmark::RegisterBenchmark(("bytes/" + name).c_str(), InCache, *k, Kind::kBytes)->Arg(784);
    benchmark::RegisterBenchmark(("mixed/" + name).c_str(), InCache, *k, Kind::kMixed)->Arg(784);
    benchmark::RegisterBenchmark(("leaf_scan/" + name).c_str(), LeafScan, *k);
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  Register();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
