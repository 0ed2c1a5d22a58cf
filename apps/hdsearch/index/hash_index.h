// SPDX-License-Identifier: Apache-2.0
//
// hash_index.h - which images are worth comparing with a query: a multi-table, multi-probe hash over sign
// bits.
//
// The signature of an image is the signs of its projections on random hyperplanes (SimHash), after the
// corpus's mean was taken off. Each table keys on bits of its own; a lookup visits the buckets a query would
// most likely have fallen into (Lv et al.: Multi-Probe LSH, 2007), ranks what it finds by the Hamming
// distance of whole signatures, and returns the best. It holds 4 bytes a table and the signature for each
// image, never a vector. docs/adr/0003-faiss.md says why this is not FAISS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/hdsearch/data/data_spec.h"
#include "apps/hdsearch/index/rotation.h"

namespace curtail::hdsearch {

// The defaults find 0.945 of the 10 nearest images of Fashion-MNIST.
struct IndexOptions {
  int tables = 8;
  // Bits a table keys on; 0 takes what makes buckets of 16 to 32 images. Raise when lookups scan too many.
  int key_bits = 0;
  // Length of the signature that ranks candidates, a multiple of 64. Raise when ranking costs recall.
  int signature_bits = 256;
  // Buckets visited a lookup, over all tables. Raise for recall; costs time in the mid-tier.
  int probes = 90;
  // Images a lookup returns, unless more neighbours are asked for. Raise for recall; costs time in the
  // leaves.
  int candidates = 500;
  uint64_t seed = 1;
};

struct LookupStats {
  size_t buckets = 0;  // visited
  size_t scanned = 0;  // different images found in them
};

// A HashIndex finds candidates. Immutable after Build(): any thread, no locks.
class HashIndex {
 public:
  // Reads the corpus twice: a sample for the mean, then every row. Errors: INVALID_ARGUMENT (options), those
  // of reading.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<HashIndex>> Build(const DataSpec& corpus,
                                                                        const IndexOptions& options,
                                                                        int threads, bool quiet);

  // The ids worth comparing to find the `k` nearest, in no order: options().candidates of them or 5 * k,
  // whichever is more, as far as there are so many images; never fewer than k. REQUIRES: dimension() values,
  // k <= shape().rows.
  std::vector<uint32_t> Lookup(std::span<const float> query, size_t k, LookupStats* stats = nullptr) const;

  const Shape& shape() const { return shape_; }
  size_t dimension() const { return shape_.dimension; }
  const IndexOptions& options() const { return options_; }
  // Heap the index holds.
  size_t MemoryBytes() const;
  // The same of an index over so many rows, without building it.
  static size_t EstimateBytes(size_t rows, const IndexOptions& options);

 private:
  // One table: ids grouped by key; the group of key h is ids[starts[h], starts[h + 1]).
  struct Table {
    std::vector<uint32_t> starts;
    std::vector<uint32_t> ids;
  };
  class Probes;

  HashIndex(Shape shape, const IndexOptions& options);
  absl::Status ComputeMean(const DataSpec& corpus);
  absl::Status ComputeSignatures(const DataSpec& corpus, int threads, bool quiet);
  void FillTable(int table);

  size_t words() const { return static_cast<size_t>(options_.signature_bits) / 64; }
  // The key of `table` in a signature.
  uint32_t Key(const uint64_t* signature, int table) const;
  // The ids in the likeliest buckets, each once: as many buckets as it takes for `want` ids, at least
  // options().probes.
  std::vector<uint32_t> Gather(const float* margins, const uint64_t* signature, size_t want,
                               LookupStats* stats) const;
  // The `want` of `found` nearest to `signature`, or all.
  std::vector<uint32_t> Nearest(std::vector<uint32_t> found, const uint64_t* signature, size_t want) const;

  // Immutable after Build().
  const Shape shape_;
  const IndexOptions options_;
  const Rotation rotation_;
  std::vector<float> mean_;
  std::vector<uint64_t> signatures_;
  std::vector<Table> tables_;
};

}  // namespace curtail::hdsearch
