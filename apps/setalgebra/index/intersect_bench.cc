// SPDX-License-Identifier: Apache-2.0
//
// The cost of intersecting posting lists: our kernels, the standard library and CRoaring, over the same lists,
// which are generated ones of chosen lengths, and those of the words of WordNet's glosses.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apps/setalgebra/data/collection.h"
#include "apps/setalgebra/index/index.h"
#include "apps/setalgebra/index/kernels.h"
#include "curtail/base/rng.h"
#ifdef CURTAIL_HAVE_ROARING
#include <roaring/roaring.h>
#endif

namespace curtail::setalgebra {
namespace {

using List16 = std::vector<uint16_t>;
using List32 = std::vector<uint32_t>;

List16 RandomList(Rng& random, size_t size, uint32_t range) {
  std::set<uint16_t> numbers;
  while (numbers.size() < size) numbers.insert(static_cast<uint16_t>(random.Below(range)));
  return {numbers.begin(), numbers.end()};
}

// Pairs of lists of n and m numbers out of 65536. Many of them, so that the branch predictor cannot learn one
// by heart.
struct Pairs {
  explicit Pairs(const benchmark::State& state) {
    Rng random(1);
    for (int i = 0; i < 64; ++i) {
      a.push_back(RandomList(random, static_cast<size_t>(state.range(0)), 65536));
      b.push_back(RandomList(random, static_cast<size_t>(state.range(1)), 65536));
    }
  }
  std::vector<List16> a, b;
};

// `intersect` is called as intersect(a, b, out).
template <class Function>
void RunPairs(benchmark::State& state, Function intersect) {
  const Pairs pairs(state);
  List16 out(pairs.a[0].size() + Kernels::kSlack);
  size_t next = 0;
  for (auto _ : state) {
    const size_t i = next++ % pairs.a.size();
    benchmark::DoNotOptimize(intersect(pairs.a[i], pairs.b[i], out.data()));
    benchmark::ClobberMemory();
  }
}

void Pair(benchmark::State& state, const Kernels* kernels) {
  RunPairs(state, [kernels](const List16& a, const List16& b, uint16_t* out) {
    return Intersect(*kernels, a.data(), a.size(), b.data(), b.size(), out);
  });
}

// One of the two functions of the kernels, to see from which skew on the other is faster.
void PairBy(benchmark::State& state,
            size_t (*function)(const uint16_t*, size_t, const uint16_t*, size_t, uint16_t*)) {
  RunPairs(state, [function](const List16& a, const List16& b, uint16_t* out) {
    return function(a.data(), a.size(), b.data(), b.size(), out);
  });
}

void PairStandard(benchmark::State& state) {
  RunPairs(state, [](const List16& a, const List16& b, uint16_t* out) {
    return std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), out);
  });
}

// Queries of arg 0 words drawn from documents of WordNet, as lists.
struct WordNetQueries {
  explicit WordNetQueries(size_t terms) {
    const DataSpec spec = *DataSpec::Parse("wordnet");
    auto loaded = Index::Load(spec, Shard{}, {50, 0, true});
    if (!loaded.ok()) {
      std::fprintf(stderr, "%s\n", loaded.status().ToString().c_str());
      std::exit(1);
    }
    index = *std::move(loaded);
    Rng random(7);
    const PassOptions pass{1, true, "", 0, kMaxDocuments};
    const absl::Status read = ForBatches(spec, pass, [&](int, const Batch& batch) {
      for (int i = 0; i < 20; ++i) {
        std::set<uint32_t> words;
        ForEachWord(batch.document(random.Below(batch.size())), [&](std::string_view word) {
          const uint32_t number = index->words().Find(word);
          if (number != WordTable::kNone && words.size() < terms) words.insert(number);
        });
        if (words.size() == terms) queries.emplace_back(words.begin(), words.end());
      }
      return absl::OkStatus();
    });
    if (!read.ok() || queries.empty()) std::exit(1);
  }
  std::unique_ptr<const Index> index;
  std::vector<std::vector<uint32_t>> queries;
};

const WordNetQueries& Queries(size_t terms) {
  static std::unique_ptr<WordNetQueries> by_terms[kMaxTerms + 1];
  if (by_terms[terms] == nullptr) by_terms[terms] = std::make_unique<WordNetQueries>(terms);
  return *by_terms[terms];
}

// Time of one query; the documents are written to a vector.
void WordNet(benchmark::State& state, const Kernels* kernels) {
  const WordNetQueries& all = Queries(static_cast<size_t>(state.range(0)));
  List32 documents;
  size_t next = 0;
  for (auto _ : state) {
    PostingList lists[kMaxTerms];
    const auto& query = all.queries[next++ % all.queries.size()];
    for (size_t i = 0; i < query.size(); ++i) lists[i] = all.index->postings().list(query[i]);
    documents.clear();
    IntersectLists(*kernels, std::span(lists).first(query.size()), 0, &documents);
    benchmark::DoNotOptimize(documents.data());
  }
}

List32 ListOf(const Index& index, uint32_t word) {
  List32 list;
  PostingList one[] = {index.postings().list(word)};
  IntersectLists(*ScalarKernels(), one, 0, &list);
  return list;
}

// The shortest lists first, as ours.
std::vector<std::vector<List32>> Plain(const WordNetQueries& all) {
  std::vector<std::vector<List32>> queries;
  for (const auto& query : all.queries) {
    auto& lists = queries.emplace_back();
    for (const uint32_t word : query) lists.push_back(ListOf(*all.index, word));
    std::sort(lists.begin(), lists.end(),
              [](const List32& a, const List32& b) { return a.size() < b.size(); });
  }
  return queries;
}

void WordNetStandard(benchmark::State& state) {
  const auto queries = Plain(Queries(static_cast<size_t>(state.range(0))));
  List32 documents, next_documents;
  size_t next = 0;
  for (auto _ : state) {
    const auto& lists = queries[next++ % queries.size()];
    documents = lists[0];
    for (size_t i = 1; i < lists.size() && !documents.empty(); ++i) {
      next_documents.clear();
      std::set_intersection(documents.begin(), documents.end(), lists[i].begin(), lists[i].end(),
                            std::back_inserter(next_documents));
      documents.swap(next_documents);
    }
    benchmark::DoNotOptimize(documents.data());
  }
}

#ifdef CURTAIL_HAVE_ROARING
struct FreeRoaring {
  void operator()(roaring_bitmap_t* bitmap) const { roaring_bitmap_free(bitmap); }
};
using Roaring = std::unique_ptr<roaring_bitmap_t, FreeRoaring>;

void PairRoaring(benchmark::State& state) {
  const Pairs pairs(state);
  const auto convert = [](const std::vector<List16>& lists) {
    std::vector<Roaring> bitmaps;
    for (const List16& list : lists) {
      const List32 wide(list.begin(), list.end());
      bitmaps.emplace_back(roaring_bitmap_of_ptr(wide.size(), wide.data()));
    }
    return bitmaps;
  };
  const std::vector<Roaring> a = convert(pairs.a), b = convert(pairs.b);
  size_t next = 0;
  for (auto _ : state) {
    const size_t i = next++ % a.size();
    benchmark::DoNotOptimize(Roaring(roaring_bitmap_and(a[i].get(), b[i].get())));
  }
}

void WordNetRoaring(benchmark::State& state) {
  std::vector<std::vector<Roaring>> queries;
  for (const auto& lists : Plain(Queries(static_cast<size_t>(state.range(0))))) {
    auto& query = queries.emplace_back();
    for (const List32& list : lists) query.emplace_back(roaring_bitmap_of_ptr(list.size(), list.data()));
  }
  List32 documents;
  size_t next = 0;
  for (auto _ : state) {
    const auto& query = queries[next++ % queries.size()];
    const Roaring both(roaring_bitmap_and(query[0].get(), query[1].get()));
    for (size_t i = 2; i < query.size() && !roaring_bitmap_is_empty(both.get()); ++i) {
      roaring_bitmap_and_inplace(both.get(), query[i].get());
    }
    documents.resize(roaring_bitmap_get_cardinality(both.get()));
    roaring_bitmap_to_uint32_array(both.get(), documents.data());
    benchmark::DoNotOptimize(documents.data());
  }
}
#endif

void Register() {
  const std::vector<std::vector<int64_t>> pairs = {
      {10, 10},    {60, 60},    {250, 250},  {1000, 1000}, {4000, 4000}, {2000, 4000}, {1000, 4000},
      {500, 4000}, {250, 4000}, {100, 4000}, {10, 4000},   {15, 60},     {50, 200},    {15, 230}};
  const auto with_pairs = [&pairs](benchmark::internal::Benchmark* bench) {
    for (const auto& pair : pairs) bench->Args(pair);
  };
  const auto with_terms = [](benchmark::internal::Benchmark* bench) {
    for (const int64_t terms : {2, 3, 5}) bench->Arg(terms);
  };
  with_pairs(benchmark::RegisterBenchmark("pair/standard", PairStandard));
  with_terms(benchmark::RegisterBenchmark("wordnet/standard", WordNetStandard));
#ifdef CURTAIL_HAVE_ROARING
  with_pairs(benchmark::RegisterBenchmark("pair/croaring", PairRoaring));
  with_terms(benchmark::RegisterBenchmark("wordnet/croaring", WordNetRoaring));
#endif
  for (const Kernels* kernels : AvailableKernels()) {
    const std::string name = kernels->name;
    with_pairs(benchmark::RegisterBenchmark(("pair/" + name).c_str(), Pair, kernels));
    with_pairs(benchmark::RegisterBenchmark(("merge/" + name).c_str(), PairBy, kernels->merge));
    with_pairs(benchmark::RegisterBenchmark(("gallop/" + name).c_str(), PairBy, kernels->gallop));
    with_terms(benchmark::RegisterBenchmark(("wordnet/" + name).c_str(), WordNet, kernels));
  }
}

}  // namespace
}  // namespace curtail::setalgebra

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  curtail::setalgebra::Register();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
