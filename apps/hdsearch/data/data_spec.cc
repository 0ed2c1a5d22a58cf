// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/data/data_spec.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "apps/kit/number_options.h"
#include "curtail/base/strings.h"

namespace curtail::hdsearch {
namespace {

using Format = DataSpec::Format;

constexpr char kFashionTrain[] = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";
constexpr char kFashionTest[] = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz";

absl::StatusOr<DataSpec> ParseSynthetic(std::string_view text, std::string_view fields) {
  DataSpec spec;
  spec.text = text;
  spec.format = Format::kSynthetic;
  SyntheticOptions& s = spec.synthetic;
  const NumberOption options[] = {{"N", &s.rows, 1, kMaxRows}, {"D", &s.dimension, 1, kMaxDimension},
                                  {"seed", &s.seed},           {"clusters", &s.clusters, 1, 1'000'000},
                                  {"rank", &s.rank, 0, 4096},  {"first", &s.first, 0, kMaxRows}};
  const absl::Status read = ReadNumberOptions(fields, options);
  if (!read.ok()) return BadData(text, Message(read));
  return spec;
}

absl::StatusOr<DataSpec> ParseRaw(std::string_view text, std::string_view rest) {
  DataSpec spec;
  spec.text = text;
  spec.format = Format::kRaw;
  const size_t comma = rest.rfind(',');
  if (comma == std::string_view::npos || comma == 0 || !rest.substr(comma + 1).starts_with("D=")) {
    return BadData(text, "write raw:FILE,D=DIMENSION, as in raw:features.dat,D=2048");
  }
  const NumberOption options[] = {{"D", &spec.dimension, 1, kMaxDimension}};
  const absl::Status read = ReadNumberOptions(rest.substr(comma + 1), options);
  if (!read.ok()) return BadData(text, Message(read));
  spec.path = rest.substr(0, comma);
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
    return BadData(
        text,
        "write fashion-mnist, synthetic:N=..,D=.., raw:FILE,D=.., or a file that ends in .fvecs, .npy, "
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
