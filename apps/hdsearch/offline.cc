// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/offline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "apps/hdsearch/data/data_spec.h"
#include "apps/hdsearch/index/ground_truth.h"
#include "apps/kit/output_file.h"
#include "apps/kit/parallel.h"

namespace curtail::hdsearch {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct LookupReport {
  double recall = 0, candidates = 0, scanned = 0;
  std::vector<double> us;  // sorted
  double Quantile(double q) const { return us[static_cast<size_t>(q * static_cast<double>(us.size() - 1))]; }
};

LookupReport Measure(const HashIndex& index, const std::vector<QueryVector>& queries,
                     const GroundTruth& truth) {
  LookupReport report;
  for (size_t q = 0; q < queries.size(); ++q) {
    LookupStats stats;
    const auto start = Clock::now();
    const std::vector<uint32_t> ids = index.Lookup(queries[q].floats(), truth.k, &stats);
    report.us.push_back(SecondsSince(start) * 1e6);
    report.recall += Recall(truth.Of(q), ids) / static_cast<double>(queries.size());
    report.candidates += static_cast<double>(ids.size()) / static_cast<double>(queries.size());
    report.scanned += static_cast<double>(stats.scanned) / static_cast<double>(queries.size());
  }
  std::sort(report.us.begin(), report.us.end());
  return report;
}

void Print(const HashIndex& index, const LookupReport& report, size_t queries, size_t k, double build_s) {
  const IndexOptions& o = index.options();
  std::printf("corpus       %zu images, %zu dimensions\n", index.shape().rows, index.dimension());
  std::printf(
      "index        %d tables of %d bits, %d probes, signatures of %d bits; built in %.2f s, %.1f MiB\n",
      o.tables, o.key_bits, o.probes, o.signature_bits, build_s,
      static_cast<double>(index.MemoryBytes()) / (1 << 20));
  std::printf("recall@%-5zu %.4f over %zu queries\n", k, report.recall, queries);
  std::printf("candidates   %.1f a query, of %.1f scanned\n", report.candidates, report.scanned);
  std::printf("lookup       p50 %.1f us, p99 %.1f us\n", report.Quantile(0.5), report.Quantile(0.99));
}

std::string NpyHeader(const Shape& shape) {
  std::string dict =
      absl::StrCat("{'descr': '", shape.element == Element::kUint8 ? "|u1" : "<f4",
                   "', 'fortran_order': False, 'shape': (", shape.rows, ", ", shape.dimension, "), }");
  while ((10 + dict.size() + 1) % 64 != 0) dict += ' ';  // NumPy aligns the rows
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

std::string_view Chars(const void* data, size_t bytes) { return {static_cast<const char*>(data), bytes}; }

absl::Status WriteFvecsRow(const Shape& shape, const std::byte* row, apps::OutputFile* out) {
  std::vector<float> values(shape.dimension);
  if (shape.element == Element::kFloat32) {
    std::memcpy(values.data(), row, shape.row_bytes());
  } else {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(row[i]);
  }
  const int32_t dimension = static_cast<int32_t>(shape.dimension);
  if (absl::Status status = out->Write(Chars(&dimension, sizeof dimension)); !status.ok()) return status;
  return out->Write(Chars(values.data(), values.size() * sizeof(float)));
}

}  // namespace

absl::Status PrintRecall(const RecallOptions& options) {
  absl::StatusOr<DataSpec> corpus = DataSpec::Parse(options.data);
  if (!corpus.ok()) return corpus.status();
  absl::StatusOr<DataSpec> spec =
      options.queries.empty() ? DefaultQueries(*corpus) : DataSpec::Parse(options.queries);
  if (!spec.ok()) return spec.status();
  const int threads = apps::Threads(options.threads);
  auto queries = LoadQueries(*spec, options.count);
  if (!queries.ok()) return queries.status();
  const auto start = Clock::now();
  auto index = HashIndex::Build(*corpus, options.index, threads, false);
  if (!index.ok()) return index.status();
  const double build_s = SecondsSince(start);
  if ((*queries)[0].dimension() != (*index)->dimension() || options.k < 1 ||
      options.k > (*index)->shape().rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "queries of ", (*queries)[0].dimension(), " dimensions and k ", options.k, " do not fit a corpus of ",
        (*index)->shape().rows, " images of ", (*index)->dimension(), " dimensions"));
  }
  auto truth = BruteForce(*corpus, *queries, options.k, threads, false);
  if (!truth.ok()) return truth.status();
  Print(**index, Measure(**index, *queries, *truth), queries->size(), options.k, build_s);
  return absl::OkStatus();
}

absl::Status WriteRows(const std::string& data, const std::string& path) {
  const bool npy = absl::EndsWith(path, ".npy");
  if (!npy && !absl::EndsWith(path, ".fvecs")) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": want a name that ends in .fvecs or .npy"));
  }
  absl::StatusOr<DataSpec> spec = DataSpec::Parse(data);
  if (!spec.ok()) return spec.status();
  absl::StatusOr<std::unique_ptr<RowReader>> reader = OpenRows(*spec);
  if (!reader.ok()) return reader.status();
  const Shape shape = (*reader)->shape();
  apps::OutputFile out(path);
  if (npy) {
    if (absl::Status status = out.Write(NpyHeader(shape)); !status.ok()) return status;
  }
  std::vector<std::byte> row(shape.row_bytes());
  apps::Progress progress(absl::StrCat("writing ", path), shape.rows, false);
  for (size_t i = 0; i < shape.rows; ++i) {
    if (absl::Status status = (*reader)->Read(i, 1, row.data()); !status.ok()) return status;
    absl::Status status =
        npy ? out.Write(Chars(row.data(), row.size())) : WriteFvecsRow(shape, row.data(), &out);
    if (!status.ok()) return status;
    progress.Add(1);
  }
  return out.Commit();
}

}  // namespace curtail::hdsearch
