// SPDX-License-Identifier: Apache-2.0
//
// rows.h - a matrix of image vectors, read a block of rows at a time, and how its rows are dealt to shards.
//
// Everything that consumes vectors (store, index, ground truth, generator) reads through RowReader, so that
// no process holds more than its share of a corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/shard.h"

namespace curtail::hdsearch {

enum class Element { kUint8, kFloat32 };

inline constexpr size_t ElementBytes(Element e) { return e == Element::kUint8 ? 1 : 4; }

// Limits that keep distances of byte rows within 32 bits and row ids too.
inline constexpr size_t kMaxDimension = 65536;
inline constexpr size_t kMaxRows = 0xfffffffe;

struct Shape {
  Element element = Element::kFloat32;
  size_t rows = 0;
  size_t dimension = 0;
  size_t row_bytes() const { return dimension * ElementBytes(element); }
};

// A RowReader reads blocks of rows; reading onwards is cheap, reading back may start the file over.
// Thread-compatible: one thread, one reader.
class RowReader {
 public:
  virtual ~RowReader() = default;

  const Shape& shape() const { return shape_; }
  // The name of it in errors: a path or a spec.
  const std::string& name() const { return name_; }

  // Reads rows [first, first + count) to `out`, count * row_bytes() bytes in this machine's byte order.
  // Errors: OUT_OF_RANGE (no such row), DATA_LOSS (truncated or corrupt; names file, row and offset),
  // INVALID_ARGUMENT (a value that is not finite).
  [[nodiscard]] absl::Status Read(size_t first, size_t count, std::byte* out);

 protected:
  RowReader(std::string name, Shape shape) : name_(std::move(name)), shape_(shape) {}
  virtual absl::Status ReadRows(size_t first, size_t count, std::byte* out) = 0;

 private:
  const std::string name_;
  const Shape shape_;
};

// Which of `count` shards holds row `row`. REQUIRES: row < rows.
inline size_t OwnerOf(size_t row, size_t rows, size_t count) { return ((row + 1) * count - 1) / rows; }

}  // namespace curtail::hdsearch
