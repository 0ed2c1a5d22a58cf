// SPDX-License-Identifier: Apache-2.0
//
// Row readers for files. Every format is the same layout with other numbers: a header, then rows of equal
// size, each perhaps with a prefix. zlib reads gzip and plain files through one interface, so compression is
// no case of its own; formats whose row count is told by the file's size must lie uncompressed.
#include <sys/stat.h>
#include <zlib.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "apps/hdsearch/data/data_spec.h"

namespace curtail::hdsearch {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are read as they lie in the file");

using Format = DataSpec::Format;

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

struct Layout {
  Shape shape;
  uint64_t header_bytes = 0;
  uint64_t prefix_bytes = 0;  // before each row; .fvecs repeats the dimension there
  uint64_t stride() const { return prefix_bytes + shape.row_bytes(); }
};

absl::Status Corrupt(const std::string& path, std::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", std::string(what)));
}

// Reads exactly `bytes` at the current position; `what` and `offset` are for the message.
absl::Status ReadExactly(gzFile_s* file, const std::string& path, void* out, size_t bytes, uint64_t offset,
                         std::string_view what) {
  char* to = static_cast<char*>(out);
  while (bytes > 0) {
    const unsigned chunk = static_cast<unsigned>(std::min<size_t>(bytes, 1u << 30));
    const int got = gzread(file, to, chunk);
    if (got <= 0) {
      int code = Z_OK;
      const char* text = gzerror(file, &code);
      const std::string why = code == Z_OK || code == Z_BUF_ERROR
                                  ? "the file ends early; copy or create it again"
                              : code == Z_ERRNO ? std::string(std::strerror(errno))
                                                : absl::StrCat("corrupt gzip data (", text, ")");
      return Corrupt(path, absl::StrCat(std::string(what), ", offset ", offset, ": ", why));
    }
    to += got, bytes -= static_cast<size_t>(got), offset += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

absl::Status CheckShape(const std::string& path, const Shape& shape) {
  if (shape.rows == 0 || shape.dimension == 0) return Corrupt(path, "holds no vectors");
  if (shape.dimension > kMaxDimension || shape.rows > kMaxRows) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", shape.rows, " rows of ", shape.dimension,
                                                   " values; at most ", kMaxRows, " of ", kMaxDimension,
                                                   " are handled"));
  }
  return absl::OkStatus();
}

// idx: 0 0 TYPE RANK, then RANK big-endian sizes. The first is the number of rows, the others multiply to a
// row.
absl::StatusOr<Layout> IdxLayout(gzFile_s* file, const std::string& path) {
  unsigned char magic[4];
  if (absl::Status s = ReadExactly(file, path, magic, 4, 0, "idx header"); !s.ok()) return s;
  if (magic[0] != 0 || magic[1] != 0 || magic[3] == 0)
    return Corrupt(path, "offset 0: no idx file (bad magic number)");
  if (magic[2] != 0x08)
    return absl::InvalidArgumentError(absl::StrCat(path, ": only idx files of unsigned bytes"));
  Layout layout{{Element::kUint8, 0, 1}, 4 + 4u * magic[3], 0};
  for (int i = 0; i < magic[3]; ++i) {
    unsigned char size[4];
    const uint64_t offset = 4 + 4u * static_cast<unsigned>(i);
    if (absl::Status s = ReadExactly(file, path, size, 4, offset, "idx header"); !s.ok()) return s;
    const uint64_t n = uint64_t{size[0]} << 24 | uint64_t{size[1]} << 16 | uint64_t{size[2]} << 8 | size[3];
    if (i == 0) {
      layout.shape.rows = n;
    } else if ((layout.shape.dimension *= n) > kMaxDimension) {
      break;  // CheckShape() refuses it; multiplying on might overflow
    }
  }
  return layout;
}

// The text after `key` up to the next comma that is outside parentheses or the closing brace.
std::string NpyField(absl::string_view dict, absl::string_view key) {
  size_t at = dict.find(absl::StrCat("'", key, "':"));
  if (at == absl::string_view::npos) return "";
  at += key.size() + 3;
  const size_t open = dict.find_first_not_of(' ', at);
  if (open == absl::string_view::npos) return "";
  const size_t end = dict[open] == '(' ? dict.find(')', open) : dict.find_first_of(",}", open);
  return end == absl::string_view::npos ? "" : std::string(dict.substr(open, end - open));
}

absl::StatusOr<Layout> NpyLayoutFromDict(const std::string& path, absl::string_view dict,
                                         uint64_t header_bytes) {
  const std::string descr = NpyField(dict, "descr"), order = NpyField(dict, "fortran_order");
  Layout layout{{}, header_bytes, 0};
  if (descr == "'<f4'") {
    layout.shape.element = Element::kFloat32;
  } else if (descr == "'|u1'") {
    layout.shape.element = Element::kUint8;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": element type ", descr, "; convert with astype('<f4') or astype('u1')"));
  }
  if (order != "False") {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is not in C order; save np.ascontiguousarray(x)"));
  }
  const std::string shape = NpyField(dict, "shape");
  const std::vector<std::string> sizes =
      absl::StrSplit(shape.empty() ? shape : shape.substr(1), ',', absl::SkipWhitespace());
  uint64_t rows = 0, dimension = 0;
  if (sizes.size() != 2 || !absl::SimpleAtoi(sizes[0], &rows) || !absl::SimpleAtoi(sizes[1], &dimension)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": shape ", shape, "); want two dimensions (rows, values)"));
  }
  layout.shape.rows = rows, layout.shape.dimension = dimension;
  return layout;
}

// npy: "\x93NUMPY", version, length of a Python dict literal (2 bytes in version 1, 4 later), the dict, the
// rows.
absl::StatusOr<Layout> NpyLayout(gzFile_s* file, const std::string& path) {
  unsigned char head[12];
  if (absl::Status s = ReadExactly(file, path, head, 8, 0, "npy header"); !s.ok()) return s;
  if (std::memcmp(head, "\x93NUMPY", 6) != 0)
    return Corrupt(path, "offset 0: no .npy file (bad magic string)");
  const unsigned version = head[6];
  if (version < 1 || version > 3)
    return Corrupt(path, absl::StrCat("offset 6: unknown .npy version ", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (absl::Status s = ReadExactly(file, path, head + 8, length_bytes, 8, "npy header"); !s.ok()) return s;
  uint64_t length = head[8] | uint64_t{head[9]} << 8;
  if (version > 1) length |= uint64_t{head[10]} << 16 | uint64_t{head[11]} << 24;
  if (length > 65536) return Corrupt(path, absl::StrCat("offset 8: a header of ", length, " bytes"));
  std::string dict(length, '\0');
  if (absl::Status s = ReadExactly(file, path, dict.data(), length, 8 + length_bytes, "npy header"); !s.ok())
    return s;
  return NpyLayoutFromDict(path, dict, 8 + length_bytes + length);
}

absl::Status CheckWholeRows(const std::string& path, uint64_t bytes, uint64_t stride, uint64_t dimension) {
  if (bytes == 0) return Corrupt(path, "is empty");
  if (bytes % stride == 0) return absl::OkStatus();
  return Corrupt(path,
                 absl::StrCat("offset ", bytes - bytes % stride, ": ", bytes % stride, " of ", stride,
                              " bytes of the last row; truncated, or the dimension is not ", dimension));
}

absl::StatusOr<Layout> FvecsLayout(gzFile_s* file, const std::string& path, uint64_t bytes) {
  if (bytes == 0) return Corrupt(path, "is empty");
  int32_t dimension = 0;
  if (absl::Status s = ReadExactly(file, path, &dimension, 4, 0, "row 0"); !s.ok()) return s;
  if (dimension < 1 || static_cast<size_t>(dimension) > kMaxDimension) {
    return Corrupt(path, absl::StrCat("offset 0: dimension ", dimension, "; no .fvecs file?"));
  }
  Layout layout{{Element::kFloat32, 0, static_cast<size_t>(dimension)}, 0, 4};
  if (absl::Status s = CheckWholeRows(path, bytes, layout.stride(), layout.shape.dimension); !s.ok())
    return s;
  layout.shape.rows = bytes / layout.stride();
  return layout;
}

absl::StatusOr<Layout> RawLayout(const std::string& path, uint64_t dimension, uint64_t bytes) {
  Layout layout{{Element::kFloat32, 0, dimension}, 0, 0};
  if (absl::Status s = CheckWholeRows(path, bytes, layout.stride(), dimension); !s.ok()) return s;
  layout.shape.rows = bytes / layout.stride();
  return layout;
}

class FileReader final : public RowReader {
 public:
  FileReader(const std::string& path, Layout layout, GzFile file, bool compressed)
      : RowReader(path, layout.shape), layout_(layout), file_(std::move(file)), compressed_(compressed) {}

 private:
  absl::Status ReadRows(size_t first, size_t count, std::byte* out) override {
    const uint64_t offset = layout_.header_bytes + first * layout_.stride();
    const std::string where = absl::StrCat("row ", first);
    if (gzseek(file_.get(), static_cast<z_off_t>(offset), SEEK_SET) < 0) {
      return Corrupt(name(),
                     absl::StrCat(where, ", offset ", offset, ": cannot go there; corrupt or truncated"));
    }
    if (layout_.prefix_bytes != 0) return ReadPrefixed(first, count, offset, out);
    const uint64_t bytes = count * layout_.shape.row_bytes();
    if (absl::Status s = ReadExactly(file_.get(), name(), out, bytes, offset, where); !s.ok()) return s;
    if (compressed_ && first + count == shape().rows) return CheckEnd(offset + bytes);
    return absl::OkStatus();
  }

  absl::Status ReadPrefixed(size_t first, size_t count, uint64_t offset, std::byte* out) {
    for (size_t row = first; row < first + count; ++row) {
      const std::string where = absl::StrCat("row ", row);
      int32_t dimension = 0;
      if (absl::Status s = ReadExactly(file_.get(), name(), &dimension, 4, offset, where); !s.ok()) return s;
      if (dimension != static_cast<int32_t>(shape().dimension)) {
        return Corrupt(name(),
                       absl::StrCat(where, ", offset ", offset, ": dimension ", dimension, ", row 0 has ",
                                    shape().dimension, "; all rows must have the same"));
      }
      const size_t bytes = shape().row_bytes();
      if (absl::Status s = ReadExactly(file_.get(), name(), out, bytes, offset + 4, where); !s.ok()) return s;
      out += bytes, offset += layout_.stride();
    }
    return absl::OkStatus();
  }

  // A plain file's size was compared with its header; of a compressed one only the end tells (and proves the
  // checksum).
  absl::Status CheckEnd(uint64_t offset) {
    char extra;
    const int got = gzread(file_.get(), &extra, 1);
    if (got == 0) return absl::OkStatus();
    return Corrupt(name(), absl::StrCat("offset ", offset,
                                        got < 0 ? ": corrupt gzip data at the end"
                                                : ": more data than the header announces"));
  }

  const Layout layout_;
  const GzFile file_;
  const bool compressed_;
};

absl::StatusOr<Layout> ReadLayout(const DataSpec& spec, gzFile_s* file, uint64_t bytes) {
  switch (spec.format) {
    case Format::kFvecs:
      return FvecsLayout(file, spec.path, bytes);
    case Format::kRaw:
      return RawLayout(spec.path, spec.dimension, bytes);
    case Format::kNpy:
      return NpyLayout(file, spec.path);
    default:
      return IdxLayout(file, spec.path);
  }
}

absl::Status OpenError(const std::string& path) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(errno));
  if (errno == EACCES) return absl::PermissionDeniedError(text);
  if (errno != ENOENT) return absl::UnavailableError(text);
  const bool packaged = absl::StrContains(path, "/datasets/fashion-mnist/");
  return absl::NotFoundError(absl::StrCat(
      text, packaged ? "; install the package dataset-fashion-mnist, or use --data synthetic:..." : ""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowReader>> OpenFile(const DataSpec& spec) {
  const std::string& path = spec.path;
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return OpenError(path);
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a regular file"));
  GzFile file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) return OpenError(path);
  gzbuffer(file.get(), 1u << 18);
  const bool compressed = gzdirect(file.get()) == 0 && info.st_size > 0;
  const uint64_t bytes = static_cast<uint64_t>(info.st_size);
  if (compressed && (spec.format == Format::kFvecs || spec.format == Format::kRaw)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is compressed; gunzip it first"));
  }
  absl::StatusOr<Layout> layout = ReadLayout(spec, file.get(), bytes);
  if (!layout.ok()) return layout.status();
  if (absl::Status s = CheckShape(path, layout->shape); !s.ok()) return s;
  const uint64_t want = layout->header_bytes + layout->shape.rows * layout->stride();
  if (!compressed && want != bytes) {
    return Corrupt(
        path, absl::StrCat("has ", bytes, " bytes, its header announces ", want, " (", layout->shape.rows,
                           " rows of ", layout->shape.dimension, "); copy or create it again"));
  }
  return std::make_unique<FileReader>(path, *layout, std::move(file), compressed);
}

}  // namespace curtail::hdsearch
