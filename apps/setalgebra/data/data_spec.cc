// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/data/data_spec.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/kit/number_options.h"
#include "curtail/base/strings.h"

namespace curtail::setalgebra {
namespace {

constexpr std::string_view kForms =
    "wordnet, FILE.txt, FILE.gz, FILE.bz2, lines:FILE, wikitext:FILE, wikipedia:FILE or "
    "synthetic:N=100000,words=50000,seed=7";
constexpr std::string_view kWordNetFolder = "/usr/share/wordnet";
constexpr uint64_t kMaxWords = 10'000'000;

absl::Status Bad(std::string_view text, std::string_view why) {
  return BadData(text, Join(why, "; write ", kForms));
}

absl::StatusOr<DataSpec> ParseSynthetic(std::string_view text, std::string_view fields) {
  DataSpec spec{.text = std::string(text), .format = DataSpec::Format::kSynthetic};
  SyntheticOptions& s = spec.synthetic;
  const NumberOption options[] = {{"N", &s.documents, 1, kMaxDocuments},
                                  {"words", &s.words, 1, kMaxWords},
                                  {"length", &s.length, 1, 1'000'000},
                                  {"skew", &s.skew, 0, 10},
                                  {"seed", &s.seed}};
  const absl::Status read = ReadNumberOptions(fields, options);
  if (!read.ok()) return Bad(text, Message(read));
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
  // The size that English text shrinks to: a third by gzip, a quarter by bzip2.
  return *size * (spec.path.ends_with(".bz2") ? 4 : spec.path.ends_with(".gz") ? 3 : 1);
}

}  // namespace curtail::setalgebra
