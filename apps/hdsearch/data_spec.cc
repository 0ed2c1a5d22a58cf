// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/data_spec.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace curtail::hdsearch {
namespace {

using Format = DataSpec::Format;

constexpr char kFashionTrain[] = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";
constexpr char kFashionTest[] = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz";

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("data '", std::string(text), "': ", std::string(why)));
}

// Reads "NAME=NUMBER" into *value when the name fits.
bool Take(std::string_view field, std::string_view name, uint64_t* value, bool* malformed) {
  absl::string_view rest(field.data(), field.size());
  if (!absl::ConsumePrefix(&rest, absl::StrCat(std::string(name), "="))) return false;
  if (!absl::SimpleAtoi(rest, value)) *malformed = true;
  return true;
}

absl::StatusOr<DataSpec> ParseSynthetic(std::string_view text, std::string_view fields) {
  DataSpec spec;
  spec.text = text;
  spec.format = Format::kSynthetic;
  SyntheticOptions& s = spec.synthetic;
  uint64_t rows = 0, dimension = 0, first = 0, clusters = s.clusters, rank = s.rank;
  for (absl::string_view part : absl::StrSplit(absl::string_view(fields.data(), fields.size()), ',')) {
    const std::string_view field(part.data(), part.size());
    bool malformed = false;
    const bool known = Take(field, "N", &rows, &malformed) || Take(field, "D", &dimension, &malformed) ||
                       Take(field, "seed", &s.seed, &malformed) ||
                       Take(field, "clusters", &clusters, &malformed) ||
                       Take(field, "rank", &rank, &malformed) || Take(field, "first", &first, &malformed);
    if (!known || malformed) {
      return Bad(text, absl::StrCat("'", part,
                                    "' is none of N=, D=, seed=, clusters=, rank=, first= with a number"));
    }
  }
  if (rows == 0 || rows > kMaxRows || first > kMaxRows) return Bad(text, "N must be 1 to 4294967294");
  if (dimension == 0 || dimension > kMaxDimension) return Bad(text, "D must be 1 to 65536");
  if (clusters == 0 || clusters > 1000000) return Bad(text, "clusters must be 1 to 1000000");
  if (rank > 4096) return Bad(text, "rank must be at most 4096");
  s.rows = rows, s.dimension = dimension, s.first = first, s.clusters = clusters, s.rank = rank;
  return spec;
}

absl::StatusOr<DataSpec> ParseRaw(std::string_view text, std::string_view rest) {
  DataSpec spec;
  spec.text = text;
  spec.format = Format::kRaw;
  const size_t comma = rest.rfind(',');
  uint64_t dimension = 0;
  bool malformed = false;
  if (comma == std::string_view::npos || comma == 0 ||
      !Take(rest.substr(comma + 1), "D", &dimension, &malformed) || malformed) {
    return Bad(text, "want raw:FILE,D=DIMENSION, e.g. raw:features.dat,D=2048");
  }
  if (dimension == 0 || dimension > kMaxDimension) return Bad(text, "D must be 1 to 65536");
  spec.path = rest.substr(0, comma);
  spec.dimension = dimension;
  return spec;
}

}  // namespace

absl::StatusOr<DataSpec> DataSpec::Parse(std::string_view text) {
  const absl::string_view t(text.data(), text.size());
  if (absl::StartsWith(t, "synthetic:")) return ParseSynthetic(text, text.substr(10));
  if (absl::StartsWith(t, "raw:")) return ParseRaw(text, text.substr(4));
  DataSpec spec;
  spec.text = text;
  if (text == "fashion-mnist") {
    spec.path = kFashionTrain;
    return spec;
  }
  if (text == "fashion-mnist:test") {
    spec.path = kFashionTest;
    return spec;
  }
  spec.path = text;
  if (absl::EndsWith(t, ".fvecs")) {
    spec.format = Format::kFvecs;
  } else if (absl::EndsWith(t, ".npy")) {
    spec.format = Format::kNpy;
  } else if (absl::EndsWith(t, "-ubyte") || absl::EndsWith(t, "-ubyte.gz") || absl::EndsWith(t, ".idx") ||
             absl::EndsWith(t, ".idx.gz")) {
    spec.format = Format::kIdx;
  } else {
    return Bad(text,
               "want fashion-mnist, synthetic:N=..,D=.., raw:FILE,D=.., or a file that ends in .fvecs, .npy, "
               ".idx[.gz] or -ubyte[.gz]");
  }
  return spec;
}

absl::StatusOr<std::unique_ptr<RowReader>> OpenRows(const DataSpec& spec) {
  return spec.format == Format::kSynthetic ? OpenSynthetic(spec) : OpenFile(spec);
}

absl::StatusOr<DataSpec> DefaultQueries(const DataSpec& corpus) {
  if (corpus.path == kFashionTrain) return DataSpec::Parse("fashion-mnist:test");
  if (corpus.format != Format::kSynthetic) {
    return absl::InvalidArgumentError(
        absl::StrCat("data '", corpus.text, "' has no queries of its own; name some with --queries"));
  }
  const SyntheticOptions& s = corpus.synthetic;
  return DataSpec::Parse(absl::StrCat("synthetic:N=10000,D=", s.dimension, ",seed=", s.seed, ",clusters=",
                                      s.clusters, ",rank=", s.rank, ",first=", s.first + s.rows));
}

absl::StatusOr<Shape> ShapeOf(const std::string& data) {
  const absl::StatusOr<DataSpec> spec = DataSpec::Parse(data);
  if (!spec.ok()) return spec.status();
  const absl::StatusOr<std::unique_ptr<RowReader>> rows = OpenRows(*spec);
  if (!rows.ok()) return rows.status();
  return (*rows)->shape();
}

}  // namespace curtail::hdsearch
