// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/data_spec.h"

#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "curtail/base/strings.h"

namespace curtail::setalgebra {
namespace {

constexpr std::string_view kForms =
    "wordnet, FILE.txt, FILE.gz, FILE.bz2, lines:FILE, wikitext:FILE, wikipedia:FILE or "
    "synthetic:N=100000,words=50000,seed=7";
constexpr std::string_view kWordNetFolder = "/usr/share/wordnet";
constexpr uint64_t kMaxWords = 10'000'000;

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(Join("data '", text, "': ", why, "; want ", kForms));
}

bool ReadNumber(const std::string& value, uint64_t least, uint64_t most, uint64_t* out) {
  return absl::SimpleAtoi(value, out) && *out >= least && *out <= most;
}

// Empty when it was understood, else what would be right.
std::string SetOption(const std::string& key, const std::string& value, SyntheticOptions* options) {
  if (key == "N") return ReadNumber(value, 1, kMaxDocuments, &options->documents) ? "" : "N from 1 to 2^32";
  if (key == "words")
    return ReadNumber(value, 1, kMaxWords, &options->words) ? "" : "words from 1 to 10000000";
  if (key == "length")
    return ReadNumber(value, 1, 1'000'000, &options->length) ? "" : "length from 1 to 1000000";
  if (key == "seed") return ReadNumber(value, 0, UINT64_MAX, &options->seed) ? "" : "seed from 0 to 2^64 - 1";
  if (key != "skew") return "N, words, length, skew or seed instead of '" + key + "'";
  const bool read = absl::SimpleAtod(value, &options->skew);
  return read && std::isfinite(options->skew) && options->skew >= 0 && options->skew <= 10
             ? ""
             : "skew from 0 to 10";
}

absl::StatusOr<DataSpec> ParseSynthetic(std::string_view text, std::string_view list) {
  DataSpec spec{.text = std::string(text), .format = DataSpec::Format::kSynthetic};
  const std::vector<std::string> parts = absl::StrSplit(std::string(list), ',', absl::SkipEmpty());
  for (const std::string& part : parts) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos) return Bad(text, "'" + part + "' is not KEY=VALUE");
    const std::string wrong = SetOption(part.substr(0, equals), part.substr(equals + 1), &spec.synthetic);
    if (!wrong.empty()) return Bad(text, "needs " + wrong);
  }
  if (spec.synthetic.documents == 0) return Bad(text, "lacks N, the number of documents");
  return spec;
}

struct Prefix {
  std::string_view text;
  DataSpec::Format format;
};
constexpr Prefix kPrefixes[] = {{"lines:", DataSpec::Format::kLines},
                                {"wikitext:", DataSpec::Format::kWikiText},
                                {"wikipedia:", DataSpec::Format::kWikipedia},
                                {"wordnet:", DataSpec::Format::kWordNet}};

absl::StatusOr<uint64_t> FileSize(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) return static_cast<uint64_t>(info.st_size);
  return absl::NotFoundError(Join(path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<DataSpec> DataSpec::Parse(std::string_view text) {
  if (text == "wordnet")
    return DataSpec{std::string(text), Format::kWordNet, std::string(kWordNetFolder), {}};
  if (text.starts_with("synthetic:")) return ParseSynthetic(text, text.substr(10));
  for (const Prefix& prefix : kPrefixes) {
    if (!text.starts_with(prefix.text)) continue;
    if (text.size() == prefix.text.size()) return Bad(text, "names no file");
    return DataSpec{std::string(text), prefix.format, std::string(text.substr(prefix.text.size())), {}};
  }
  for (const std::string_view end : {".txt", ".gz", ".bz2"}) {
    if (text.ends_with(end) && text.size() > end.size()) {
      return DataSpec{std::string(text), Format::kLines, std::string(text), {}};
    }
  }
  return Bad(text, "is not understood");
}

absl::StatusOr<std::unique_ptr<DocumentReader>> OpenDocuments(const DataSpec& spec) {
  if (spec.format == DataSpec::Format::kSynthetic) return OpenSynthetic(spec);
  return OpenTextFiles(spec);
}

absl::StatusOr<uint64_t> EstimateTextBytes(const DataSpec& spec) {
  if (spec.format == DataSpec::Format::kSynthetic)
    return spec.synthetic.documents * spec.synthetic.length * 6;
  if (spec.format == DataSpec::Format::kWordNet) {
    uint64_t bytes = 0;
    for (const char* part : {"noun", "verb", "adj", "adv"}) {
      const absl::StatusOr<uint64_t> size = FileSize(spec.path + "/data." + part);
      if (!size.ok()) return size.status();
      bytes += *size;
    }
    return bytes / 2;  // about half of it is glosses
  }
  const absl::StatusOr<uint64_t> size = FileSize(spec.path);
  if (!size.ok()) return size.status();
  // What English text shrinks to: a third by gzip, a quarter by bzip2.
  return *size * (spec.path.ends_with(".bz2") ? 4 : spec.path.ends_with(".gz") ? 3 : 1);
}

}  // namespace curtail::setalgebra
