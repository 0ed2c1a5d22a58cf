// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/index/ground_truth.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "apps/kit/output_file.h"
#include "apps/kit/parallel.h"
#include "curtail/base/mutex.h"

namespace curtail::hdsearch {
namespace {

// Rows compared with all queries before the next are read; a block of images stays in the L2 cache.
constexpr size_t kBlockBytes = 256 << 10;

// A cached answer: this header, then queries * k ids.
struct CacheHeader {
  char magic[8] = {'c', 'u', 'r', 't', 'g', 't', '0', '1'};
  uint64_t queries = 0;
  uint64_t k = 0;
};

// Compares rows [begin, end) with all queries.
absl::Status ScanRange(const DataSpec& corpus, std::span<const QueryVector> queries, size_t begin, size_t end,
                       std::vector<TopK>* best, apps::Progress* progress) {
  absl::StatusOr<std::unique_ptr<RowReader>> reader = OpenRows(corpus);
  if (!reader.ok()) return reader.status();
  const Shape shape = (*reader)->shape();
  const size_t block = std::max<size_t>(1, kBlockBytes / shape.row_bytes());
  std::vector<std::byte> rows(block * shape.row_bytes());
  for (size_t first = begin; first < end; first += block) {
    const size_t count = std::min(block, end - first);
    if (absl::Status status = (*reader)->Read(first, count, rows.data()); !status.ok()) return status;
    for (size_t q = 0; q < queries.size(); ++q) {
      ScanBlock(BestKernels(), shape, queries[q], rows.data(), static_cast<uint32_t>(first), count,
                &(*best)[q]);
    }
    progress->Add(count);
  }
  return absl::OkStatus();
}

// FNV-1a: the name of a cache file must be the same in every process, and no more.
uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string Fingerprint(const DataSpec& spec) {
  struct stat info{};
  if (spec.format == DataSpec::Format::kSynthetic || stat(spec.path.c_str(), &info) != 0) return spec.text;
  std::error_code error;
  const std::string path = std::filesystem::absolute(spec.path, error).string();
  return absl::StrCat(path, "|", spec.dimension, "|", info.st_size, "|", info.st_mtim.tv_sec, ".",
                      info.st_mtim.tv_nsec);
}

}  // namespace

absl::StatusOr<std::vector<QueryVector>> LoadQueries(const DataSpec& spec, size_t count) {
  absl::StatusOr<std::unique_ptr<RowReader>> reader = OpenRows(spec);
  if (!reader.ok()) return reader.status();
  const Shape shape = (*reader)->shape();
  std::vector<std::byte> row(shape.row_bytes());
  std::vector<float> floats(shape.dimension);
  std::vector<QueryVector> queries;
  for (size_t i = 0; i < std::min(count, shape.rows); ++i) {
    if (absl::Status status = (*reader)->Read(i, 1, row.data()); !status.ok()) return status;
    if (shape.element == Element::kUint8) {
      queries.push_back(
          QueryVector::FromBytes({reinterpret_cast<const uint8_t*>(row.data()), shape.dimension}));
    } else {
      std::memcpy(floats.data(), row.data(), row.size());
      queries.push_back(QueryVector::FromFloats(floats));
    }
  }
  return queries;
}

absl::StatusOr<GroundTruth> BruteForce(const DataSpec& corpus, std::span<const QueryVector> queries, size_t k,
                                       int threads, bool quiet) {
  absl::StatusOr<std::unique_ptr<RowReader>> reader = OpenRows(corpus);
  if (!reader.ok()) return reader.status();
  const size_t rows = (*reader)->shape().rows;
  apps::Progress progress(absl::StrCat("comparing ", queries.size(), " queries with ", corpus.text), rows,
                          quiet);
  Mutex mu;
  std::vector<TopK> best(queries.size(), TopK(k));  // guarded by mu
  auto scan = [&](size_t begin, size_t end) {
    std::vector<TopK> mine(queries.size(), TopK(k));
    absl::Status status = ScanRange(corpus, queries, begin, end, &mine, &progress);
    MutexLock lock(mu);
    for (size_t q = 0; q < queries.size(); ++q) {
      for (const Neighbor& n : mine[q].TakeSorted()) best[q].Add(n);
    }
    return status;
  };
  if (absl::Status status = apps::ForRanges(0, rows, threads, scan); !status.ok()) return status;
  GroundTruth truth{k, {}};
  truth.ids.reserve(queries.size() * k);
  for (TopK& one : best) {
    for (const Neighbor& n : one.TakeSorted()) truth.ids.push_back(n.id);
  }
  return truth;
}

double Recall(std::span<const uint32_t> truth, std::span<const uint32_t> found) {
  if (truth.empty()) return 1;
  const auto hits = std::count_if(truth.begin(), truth.end(), [&](uint32_t id) {
    return std::find(found.begin(), found.end(), id) != found.end();
  });
  return static_cast<double>(hits) / static_cast<double>(truth.size());
}

std::string GroundTruthCachePath(const DataSpec& corpus, const DataSpec& queries, size_t count, size_t k) {
  std::string base;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/') {
    base = xdg;
  } else if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    base = absl::StrCat(home, "/.cache");
  } else {
    return "";
  }
  const uint64_t key =
      HashText(absl::StrCat(Fingerprint(corpus), "\n", Fingerprint(queries), "\n", count, "\n", k));
  return absl::StrCat(base, "/curtail/hdsearch-truth-", absl::Hex(key, absl::kZeroPad16), ".bin");
}

absl::StatusOr<GroundTruth> ReadGroundTruth(const std::string& path, size_t count, size_t k) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": not there"));
  CacheHeader header;
  const CacheHeader expected;
  GroundTruth truth{k, std::vector<uint32_t>(count * k)};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  file.read(reinterpret_cast<char*>(truth.ids.data()), static_cast<std::streamsize>(truth.ids.size() * 4));
  const bool whole = file.good() && file.peek() == std::ifstream::traits_type::eof();
  if (!whole || std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 ||
      header.queries != count || header.k != k) {
    return absl::DataLossError(absl::StrCat(path, ": no ground truth for ", count, " queries and k ", k));
  }
  return truth;
}

absl::Status WriteGroundTruth(const std::string& path, const GroundTruth& truth) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  CacheHeader header;
  header.queries = truth.queries(), header.k = truth.k;
  apps::OutputFile file(path);
  absl::Status status = file.Write({reinterpret_cast<const char*>(&header), sizeof header});
  if (!status.ok()) return status;
  status = file.Write({reinterpret_cast<const char*>(truth.ids.data()), truth.ids.size() * 4});
  return status.ok() ? file.Commit() : status;
}

}  // namespace curtail::hdsearch
