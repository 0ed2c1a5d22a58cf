// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/offline.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "apps/kit/output_file.h"
#include "apps/setalgebra/data/collection.h"
#include "apps/setalgebra/index/index.h"
#include "curtail/base/strings.h"

namespace curtail::setalgebra {
namespace {

absl::StatusOr<std::unique_ptr<const Index>> LoadShard(const OfflineOptions& options, Shard shard) {
  const absl::StatusOr<DataSpec> spec = DataSpec::Parse(options.data);
  if (!spec.ok()) return spec.status();
  return Index::Load(*spec, shard, {options.stop_words, options.threads, options.quiet});
}

// Terms without repetitions.
absl::StatusOr<std::vector<std::string>> NormalTerms(const std::vector<std::string>& terms) {
  std::vector<std::string> normal;
  for (const std::string& term : terms) {
    absl::StatusOr<std::string> one = NormalTerm(term);
    if (!one.ok()) return one.status();
    if (std::find(normal.begin(), normal.end(), *one) == normal.end()) normal.push_back(*std::move(one));
  }
  return normal;
}

// Prints the text of `documents`, which are rising.
absl::Status PrintDocuments(const DataSpec& spec, const std::vector<uint32_t>& documents) {
  if (documents.empty()) return absl::OkStatus();
  auto next = documents.begin();
  const PassOptions pass{1, true, "", documents.front(), documents.back() + uint64_t{1}};
  return ForBatches(spec, pass, [&](int, const Batch& batch) {
    for (; next != documents.end() && *next < batch.first + batch.size(); ++next) {
      std::string text(batch.document(*next - batch.first).substr(0, 300));
      std::replace(text.begin(), text.end(), '\n', ' ');
      std::printf("%10" PRIu32 "  %s\n", *next, text.c_str());
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status WriteDocuments(const OfflineOptions& options, const std::string& path) {
  const absl::StatusOr<DataSpec> spec = DataSpec::Parse(options.data);
  if (!spec.ok()) return spec.status();
  absl::StatusOr<std::unique_ptr<DocumentReader>> reader = OpenDocuments(*spec);
  if (!reader.ok()) return reader.status();
  apps::OutputFile file(path);
  std::string_view document;
  for (std::string line;;) {
    const absl::StatusOr<bool> more = (*reader)->Next(&document);
    if (!more.ok()) return more.status();
    if (!*more) return file.Commit();
    line.assign(document);
    std::replace_if(line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    line.push_back('\n');
    if (absl::Status status = file.Write(line); !status.ok()) return status;
  }
}

absl::Status PrintQuery(const OfflineOptions& options, const std::vector<std::string>& terms, size_t show) {
  const absl::StatusOr<std::vector<std::string>> normal = NormalTerms(terms);
  if (!normal.ok()) return normal.status();
  const auto index = LoadShard(options, Shard{});
  if (!index.ok()) return index.status();
  const std::vector<std::string_view> views(normal->begin(), normal->end());
  std::vector<uint32_t> documents, stop_words;
  absl::Status found = (*index)->Find(BestKernels(), views, &documents, &stop_words);
  if (!found.ok()) return found;
  if (stop_words.size() == views.size()) {
    return absl::InvalidArgumentError("all terms are words too common to be indexed; add a rarer one");
  }
  for (const uint32_t at : stop_words) std::printf("ignored: %s\n", (*normal)[at].c_str());
  std::printf("%zu of %" PRIu64 " documents\n", documents.size(), (*index)->documents());
  documents.resize(std::min(documents.size(), show));
  return PrintDocuments(*DataSpec::Parse(options.data), documents);
}

absl::Status PrintStats(const OfflineOptions& options, size_t shards) {
  std::printf("%-9s %11s %10s %12s %10s %13s %14s %7s\n", "shard", "documents", "words", "postings", "MiB",
              "bytes/posting", "of it, lists", "s");
  std::string stop_words;
  for (uint32_t i = 0; i < shards; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto loaded = LoadShard(options, Shard{i, static_cast<uint32_t>(shards)});
    if (!loaded.ok()) return loaded.status();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const Index& index = **loaded;
    const double postings = static_cast<double>(std::max<uint64_t>(index.postings().postings(), 1));
    const double lists = static_cast<double>(index.postings().bytes());
    const double all = lists + static_cast<double>(index.words().bytes());
    std::printf("%-9s %11" PRIu64 " %10zu %12" PRIu64 " %10.1f %13.2f %14.2f %7.2f\n",
                Join(i, "/", shards).c_str(), index.documents(), index.words().size(),
                index.postings().postings(), all / (1 << 20), all / postings, lists / postings, took.count());
    if (i > 0) continue;
    for (uint32_t word = 0; word < index.stop_words().size(); ++word) {
      stop_words += Join(" ", index.stop_words().word(word));
    }
  }
  std::printf("stop words:%s\n", stop_words.c_str());
  return absl::OkStatus();
}

}  // namespace curtail::setalgebra
