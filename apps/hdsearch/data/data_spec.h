// SPDX-License-Identifier: Apache-2.0
//
// data_spec.h - names a corpus in one string, as every flag called --data or --queries takes it.
//
//   fashion-mnist                     the 60,000 training images of the distribution's package (784 bytes
//   each) fashion-mnist:test                its 10,000 test images FILE.fvecs  FILE.npy little-endian float32
//   rows with their length; NumPy, float32 or uint8, 2-D, C order FILE-ubyte[.gz]  FILE.idx[.gz]    idx,
//   unsigned bytes raw:FILE,D=2048                   float32 rows without any header
//   synthetic:N=500000,D=2048,seed=7,clusters=1000      generated; row i depends on seed and i only
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/hdsearch/data/rows.h"

namespace curtail::hdsearch {

// Clustered vectors like the deep features of images: a cluster's centre, plus a point of a low-dimensional
// subspace that all clusters share, plus a little noise in every dimension.
struct SyntheticOptions {
  size_t rows = 0;
  size_t dimension = 0;
  size_t first = 0;  // the row that counts as 0: rows past the corpus make queries that are not in it
  uint64_t seed = 1;
  size_t clusters = 100;
  size_t rank = 16;  // dimension of the subspace; the higher, the harder the search
};

// A DataSpec is one parsed data string. Value type.
struct DataSpec {
  enum class Format { kIdx, kFvecs, kNpy, kRaw, kSynthetic };

  // Errors: INVALID_ARGUMENT that lists what would be right. Opens no file.
  static absl::StatusOr<DataSpec> Parse(std::string_view text);

  std::string text;  // as given
  Format format = Format::kIdx;
  std::string path;            // all but kSynthetic
  size_t dimension = 0;        // kRaw
  SyntheticOptions synthetic;  // kSynthetic
};

// Opens what `spec` names and checks its header and size. Errors: NOT_FOUND, PERMISSION_DENIED, DATA_LOSS
// (truncated or corrupt), INVALID_ARGUMENT (a shape or type not handled).
[[nodiscard]] absl::StatusOr<std::unique_ptr<RowReader>> OpenRows(const DataSpec& spec);

// How many rows a --data has, and of which kind; reads its header only. Errors: those of the spec and of OpenRows().
[[nodiscard]] absl::StatusOr<Shape> ShapeOf(const std::string& data);

// The queries that belong to a corpus: the test images of fashion-mnist, 10,000 rows past the end of a
// synthetic one. Errors: INVALID_ARGUMENT when a corpus has none of its own.
[[nodiscard]] absl::StatusOr<DataSpec> DefaultQueries(const DataSpec& corpus);

// Implementations, a file each.
[[nodiscard]] absl::StatusOr<std::unique_ptr<RowReader>> OpenFile(const DataSpec& spec);
[[nodiscard]] absl::StatusOr<std::unique_ptr<RowReader>> OpenSynthetic(const DataSpec& spec);

}  // namespace curtail::hdsearch
