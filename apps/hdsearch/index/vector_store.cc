// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/index/vector_store.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "apps/kit/parallel.h"

namespace curtail::hdsearch {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kLoadBlockBytes = 1 << 20;

// A row's first lines only: the hardware follows a stream once it has begun.
inline void Prefetch(const std::byte* row, size_t bytes) {
  for (size_t at = 0; at < std::min<size_t>(bytes, 16 * kLine); at += kLine) __builtin_prefetch(row + at);
}

// Calls distance(row) for every row that next() yields, with the row after next already on its way.
template <class RowAt, class IdAt, class Distance>
void ScanRows(size_t count, size_t row_bytes, const RowAt& row_at, const IdAt& id_at,
              const Distance& distance, TopK* best) {
  constexpr size_t kAhead = 2;
  for (size_t i = 0; i < std::min(kAhead, count); ++i) Prefetch(row_at(i), row_bytes);
  for (size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) Prefetch(row_at(i + kAhead), row_bytes);
    best->Add({static_cast<float>(distance(row_at(i))), id_at(i)});
  }
}

// Picks the kernel for the corpus's and the query's form and hands it on as distance(row).
template <class Use>
void WithDistance(const Kernels& kernels, const Shape& shape, const QueryVector& query, const Use& use) {
  const size_t n = shape.dimension;
  const float* floats = query.floats().data();
  const uint8_t* bytes = query.bytes().data();
  if (shape.element == Element::kFloat32) {
    use([&kernels, floats, n](const std::byte* row) {
      return kernels.floats(floats, reinterpret_cast<const float*>(row), n);
    });
  } else if (!query.bytes().empty()) {
    use([&kernels, bytes, n](const std::byte* row) {
      return kernels.bytes(bytes, reinterpret_cast<const uint8_t*>(row), n);
    });
  } else {
    use([&kernels, floats, n](const std::byte* row) {
      return kernels.mixed(floats, reinterpret_cast<const uint8_t*>(row), n);
    });
  }
}

}  // namespace

QueryVector QueryVector::FromFloats(std::span<const float> values) {
  QueryVector query;
  query.floats_.assign(values.begin(), values.end());
  const bool whole = std::all_of(values.begin(), values.end(),
                                 [](float v) { return v >= 0 && v <= 255 && v == std::floor(v); });
  if (whole) query.bytes_.assign(values.begin(), values.end());
  return query;
}

QueryVector QueryVector::FromBytes(std::span<const uint8_t> values) {
  QueryVector query;
  query.bytes_.assign(values.begin(), values.end());
  query.floats_.assign(values.begin(), values.end());
  return query;
}

VectorStore::VectorStore(Shape shape, size_t first, size_t rows)
    : shape_(shape), first_(first), rows_(rows) {}

VectorStore::~VectorStore() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
}

absl::StatusOr<std::unique_ptr<VectorStore>> VectorStore::Load(const DataSpec& spec, Shard shard,
                                                               const LoadOptions& options) {
  absl::StatusOr<std::unique_ptr<RowReader>> reader = OpenRows(spec);
  if (!reader.ok()) return reader.status();
  const Shape shape = (*reader)->shape();
  const size_t first = shard.Begin(shape.rows), end = shard.End(shape.rows);
  if (first == end) {
    return absl::InvalidArgumentError(absl::StrCat("shard ", shard.index, "/", shard.count, " of ", spec.text,
                                                   " is empty: it has ", shape.rows,
                                                   " rows; use fewer shards"));
  }
  std::unique_ptr<VectorStore> store(new VectorStore(shape, first, end - first));
  if (absl::Status status = store->Fill(spec, options); !status.ok()) return status;
  return store;
}

absl::Status VectorStore::Fill(const DataSpec& spec, const LoadOptions& options) {
  mapped_bytes_ = rows_ * shape_.row_bytes();
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", mapped_bytes_, " bytes of ", spec.text, "; use more shards"));
  }
  data_ = static_cast<std::byte*>(memory);
  madvise(data_, mapped_bytes_, MADV_HUGEPAGE);  // rows are visited at random: fewer TLB misses; optional
  apps::Progress progress(absl::StrCat("loading ", spec.text), rows_, options.quiet);
  const size_t block = std::max<size_t>(1, kLoadBlockBytes / shape_.row_bytes());
  auto load = [&](size_t begin, size_t end) {
    absl::StatusOr<std::unique_ptr<RowReader>> reader = OpenRows(spec);
    if (!reader.ok()) return reader.status();
    for (size_t row = begin; row < end; row += block) {
      const size_t count = std::min(block, end - row);
      std::byte* to = data_ + (row - first_) * shape_.row_bytes();
      if (absl::Status status = (*reader)->Read(row, count, to); !status.ok()) return status;
      progress.Add(count);
    }
    return absl::OkStatus();
  };
  return apps::ForRanges(first_, first_ + rows_, options.threads, load);
}

QueryVector VectorStore::RowAsQuery(size_t id) const {
  if (shape_.element == Element::kUint8) {
    return QueryVector::FromBytes({reinterpret_cast<const uint8_t*>(Row(id)), shape_.dimension});
  }
  return QueryVector::FromFloats({reinterpret_cast<const float*>(Row(id)), shape_.dimension});
}

void VectorStore::Scan(const Kernels& kernels, const QueryVector& query, std::span<const uint32_t> ids,
                       TopK* best) const {
  WithDistance(kernels, shape_, query, [&](const auto& distance) {
    ScanRows(
        ids.size(), shape_.row_bytes(), [&](size_t i) { return Row(ids[i]); },
        [&](size_t i) { return ids[i]; }, distance, best);
  });
}

void ScanBlock(const Kernels& kernels, const Shape& shape, const QueryVector& query, const std::byte* rows,
               uint32_t first_id, size_t count, TopK* best) {
  const size_t row_bytes = shape.row_bytes();
  WithDistance(kernels, shape, query, [&](const auto& distance) {
    ScanRows(
        count, row_bytes, [&](size_t i) { return rows + i * row_bytes; },
        [&](size_t i) { return first_id + static_cast<uint32_t>(i); }, distance, best);
  });
}

}  // namespace curtail::hdsearch
