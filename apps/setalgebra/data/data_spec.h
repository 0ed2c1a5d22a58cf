// SPDX-License-Identifier: Apache-2.0
//
// data_spec.h - names a collection of documents in one string, as every flag called --data takes it, and
// reads it.
//
//   wordnet[:FOLDER]      the glosses of WordNet; of the distribution's package by default
//   FILE.txt  FILE.gz  FILE.bz2  lines:FILE
//                         one document a line, an empty line an empty one
//   wikitext:FILE         WikiText: a document is an article, which begins with " = Title = "
//   wikipedia:FILE        a dump of MediaWiki: a document is a page of namespace 0 that is no redirect
//   synthetic:N=100000,words=50000,length=12,skew=1,seed=7
//                         generated; document i depends on the options and i only
//
// Files may be plain, gzip or bzip2; the first bytes tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace curtail::setalgebra {

// Documents of words that Zipf's law chooses.
struct SyntheticOptions {
  uint64_t documents = 0;
  uint64_t words = 50000;  // different ones
  uint64_t length = 12;    // words a document: 1 to 2 * length - 1, each number as likely
  double skew = 1;         // word number r is chosen with probability proportional to 1 / r^skew
  uint64_t seed = 1;
};

// A DataSpec is one parsed data string. Value type.
struct DataSpec {
  enum class Format { kWordNet, kLines, kWikiText, kWikipedia, kSynthetic };

  // Errors: INVALID_ARGUMENT that lists what would be right. Opens no file.
  static absl::StatusOr<DataSpec> Parse(std::string_view text);

  std::string text;  // as given
  Format format = Format::kLines;
  std::string path;            // all but kSynthetic
  SyntheticOptions synthetic;  // kSynthetic
};

// No document is longer.
inline constexpr size_t kMaxDocument = size_t{64} << 20;
// A collection has at most so many.
inline constexpr uint64_t kMaxDocuments = uint64_t{1} << 32;

// A DocumentReader gives the documents of a collection in order. Thread-compatible.
class DocumentReader {
 public:
  virtual ~DocumentReader() = default;

  // The next document, valid until the next call; false behind the last. Errors: DATA_LOSS (corrupt or
  // truncated, with the line or offset), RESOURCE_EXHAUSTED (a line or document too long).
  [[nodiscard]] virtual absl::StatusOr<bool> Next(std::string_view* document) = 0;

  // How much was read, of all, for progress; and in what.
  virtual uint64_t done() const = 0;
  virtual uint64_t total() const = 0;
  virtual const char* unit() const = 0;
};

// Errors: NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT (no regular file).
[[nodiscard]] absl::StatusOr<std::unique_ptr<DocumentReader>> OpenDocuments(const DataSpec& spec);

// How many bytes of text `spec` holds, estimated from the sizes of its files. Errors: those of finding them.
[[nodiscard]] absl::StatusOr<uint64_t> EstimateTextBytes(const DataSpec& spec);

// Implementations, a file each.
[[nodiscard]] absl::StatusOr<std::unique_ptr<DocumentReader>> OpenTextFiles(const DataSpec& spec);
[[nodiscard]] std::unique_ptr<DocumentReader> OpenSynthetic(const DataSpec& spec);

}  // namespace curtail::setalgebra
