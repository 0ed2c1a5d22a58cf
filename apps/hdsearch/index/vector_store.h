// SPDX-License-Identifier: Apache-2.0
//
// vector_store.h - a shard of the corpus in memory, and the scan that ranks rows of it against a query.
//
// Byte-valued corpora stay bytes (784 a Fashion-MNIST image, a quarter of the float form); the kernel that
// fits is chosen once a query, not once a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/hdsearch/data/data_spec.h"
#include "apps/hdsearch/data/rows.h"
#include "apps/hdsearch/index/kernels.h"
#include "apps/hdsearch/index/top_k.h"

namespace curtail::hdsearch {

// A query vector as the client sent it, in the cheaper form its values allow: whole numbers of 0 to 255
// become bytes. Value type.
class QueryVector {
 public:
  QueryVector() = default;
  static QueryVector FromFloats(std::span<const float> values);
  static QueryVector FromBytes(std::span<const uint8_t> values);

  size_t dimension() const { return floats_.size(); }
  const std::vector<float>& floats() const { return floats_; }
  // Empty when the values are no bytes.
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<float> floats_;
  std::vector<uint8_t> bytes_;
};

struct LoadOptions {
  int threads = 1;
  bool quiet = false;  // no progress on stderr
};

// Adds `count` rows that lie one after the other at `rows`, with ids from `first_id` on, to `best`. `shape`
// tells their form. REQUIRES: query has that dimension.
void ScanBlock(const Kernels& kernels, const Shape& shape, const QueryVector& query, const std::byte* rows,
               uint32_t first_id, size_t count, TopK* best);

// A VectorStore holds rows [first_row(), first_row() + rows()) of a corpus. Immutable after loading: any
// thread.
class VectorStore {
 public:
  // Reads the shard's rows. Errors: those of OpenRows() and RowReader::Read(), RESOURCE_EXHAUSTED (no
  // memory), and INVALID_ARGUMENT when the shard would be empty.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<VectorStore>> Load(const DataSpec& spec, Shard shard,
                                                                         const LoadOptions& options);
  ~VectorStore();
  VectorStore(const VectorStore&) = delete;
  VectorStore& operator=(const VectorStore&) = delete;

  // The whole corpus's shape, and the part held here.
  const Shape& shape() const { return shape_; }
  size_t first_row() const { return first_; }
  size_t rows() const { return rows_; }
  bool Holds(size_t id) const { return id >= first_ && id - first_ < rows_; }

  // The row of image `id`, shape().row_bytes() long. REQUIRES: Holds(id).
  const std::byte* Row(size_t id) const { return data_ + (id - first_) * shape_.row_bytes(); }
  QueryVector RowAsQuery(size_t id) const;

  // Adds the images `ids` and their distances to `best`. REQUIRES: query has the corpus's dimension;
  // Holds(each id).
  void Scan(const Kernels& kernels, const QueryVector& query, std::span<const uint32_t> ids,
            TopK* best) const;

 private:
  VectorStore(Shape shape, size_t first, size_t rows);
  absl::Status Fill(const DataSpec& spec, const LoadOptions& options);

  // Immutable after Load().
  const Shape shape_;
  const size_t first_;
  const size_t rows_;
  std::byte* data_ = nullptr;  // mapped, mapped_bytes_ long
  size_t mapped_bytes_ = 0;
};

}  // namespace curtail::hdsearch
