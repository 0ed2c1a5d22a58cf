// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/index/hash_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "apps/hdsearch/index/hamming.h"
#include "apps/kit/parallel.h"

namespace curtail::hdsearch {
namespace {

constexpr size_t kBlockRows = 256;
constexpr size_t kMeanBlocks = 64;  // the mean is taken over this many evenly spaced blocks: the threshold of
                                    // a sign bit need not be exact

constexpr size_t kCandidatesPerK = 5;

absl::Status Check(const IndexOptions& o) {
  const auto bad = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("index: ", what));
  };
  if (o.tables < 1 || o.tables > 64) return bad("tables must be 1 to 64");
  if (o.key_bits < 1 || o.key_bits > 24) return bad("key bits must be 1 to 24, or 0 for automatic");
  if (o.signature_bits < 64 || o.signature_bits > 4096 || o.signature_bits % 64 != 0) {
    return bad("signature bits must be a multiple of 64, 64 to 4096");
  }
  if (o.tables * o.key_bits > o.signature_bits)
    return bad("tables times key bits must not exceed signature bits");
  if (o.probes < 1 || o.candidates < 1) return bad("probes and candidates must be at least 1");
  return absl::OkStatus();
}

int AutomaticKeyBits(size_t rows) { return std::clamp(static_cast<int>(std::bit_width(rows / 32)), 4, 20); }

IndexOptions WithDefaults(IndexOptions options, size_t rows) {
  if (options.key_bits == 0) options.key_bits = AutomaticKeyBits(rows);
  return options;
}

void ToFloats(const std::byte* rows, size_t values, Element element, float* out) {
  if (element == Element::kFloat32) {
    std::memcpy(out, rows, values * sizeof(float));
  } else {
    for (size_t i = 0; i < values; ++i) out[i] = static_cast<float>(rows[i]);
  }
}

void PackSigns(const float* margins, size_t bits, uint64_t* signature) {
  for (size_t word = 0; word < bits / 64; ++word) {
    uint64_t packed = 0;
    for (size_t bit = 0; bit < 64; ++bit) packed |= uint64_t{margins[word * 64 + bit] > 0} << bit;
    signature[word] = packed;
  }
}

}  // namespace

// Enumerates buckets over all tables, likeliest first. A bucket is named by the key bits in which it differs
// from the query's; it costs the sum of those bits' squared margins. The bits of a table are ordered by
// rising margin, and from a set whose highest position is p follow the set with p + 1 in p's place and the
// set with p + 1 besides: each set is made exactly once, and never before a cheaper one.
class HashIndex::Probes {
 public:
  Probes(const HashIndex& index, const float* margins, const uint64_t* signature);

  // Moves on to the next bucket; false when there is none left.
  bool Next();
  const Table& table() const { return index_.tables_[static_cast<size_t>(now_.table)]; }
  uint32_t key() const;

 private:
  struct Probe {
    float cost;
    uint32_t flips;  // bit i stands for position i in the table's order
    int table;
    friend bool operator>(const Probe& a, const Probe& b) { return a.cost > b.cost; }
  };
  // A key bit and its squared margin.
  struct Bit {
    float square;
    uint32_t mask;
  };
  const Bit& BitAt(int table, int position) const {
    return bits_[static_cast<size_t>(table * width_ + position)];
  }
  void Push(Probe probe) {
    heap_.push_back(probe);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  const HashIndex& index_;
  const int width_;  // bits of a key
  std::vector<Bit> bits_;
  std::vector<uint32_t> keys_;
  std::vector<Probe> heap_;  // cheapest on top
  Probe now_{};
};

HashIndex::Probes::Probes(const HashIndex& index, const float* margins, const uint64_t* signature)
    : index_(index), width_(index.options_.key_bits) {
  const int tables = index.options_.tables;
  bits_.reserve(static_cast<size_t>(tables * width_));
  heap_.reserve(static_cast<size_t>(tables + index.options_.probes));
  for (int t = 0; t < tables; ++t) {
    for (int i = 0; i < width_; ++i) {
      const float margin = margins[t * width_ + i];
      bits_.push_back({margin * margin, 1u << i});
    }
    std::sort(bits_.end() - width_, bits_.end(),
              [](const Bit& a, const Bit& b) { return a.square < b.square; });
    keys_.push_back(index.Key(signature, t));
    heap_.push_back({0, 0, t});  // equal costs: a heap as it stands
  }
}

bool HashIndex::Probes::Next() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  now_ = heap_.back();
  heap_.pop_back();
  const int next = static_cast<int>(std::bit_width(now_.flips));  // the position above the highest in the set
  if (next == width_) return true;
  const float with = now_.cost + BitAt(now_.table, next).square;
  Push({with, now_.flips | 1u << next, now_.table});
  if (next > 0) {
    const uint32_t highest = 1u << (next - 1);
    Push({with - BitAt(now_.table, next - 1).square, (now_.flips ^ highest) | highest << 1, now_.table});
  }
  return true;
}

uint32_t HashIndex::Probes::key() const {
  uint32_t key = keys_[static_cast<size_t>(now_.table)];
  for (uint32_t left = now_.flips; left != 0; left &= left - 1)
    key ^= BitAt(now_.table, std::countr_zero(left)).mask;
  return key;
}

HashIndex::HashIndex(Shape shape, const IndexOptions& options)
    : shape_(shape),
      options_(options),
      rotation_(shape.dimension, static_cast<size_t>(options.signature_bits), options.seed) {}

absl::StatusOr<std::unique_ptr<HashIndex>> HashIndex::Build(const DataSpec& corpus,
                                                            const IndexOptions& options, int threads,
                                                            bool quiet) {
  absl::StatusOr<std::unique_ptr<RowReader>> reader = OpenRows(corpus);
  if (!reader.ok()) return reader.status();
  const IndexOptions complete = WithDefaults(options, (*reader)->shape().rows);
  if (absl::Status status = Check(complete); !status.ok()) return status;
  std::unique_ptr<HashIndex> index(new HashIndex((*reader)->shape(), complete));
  if (absl::Status status = index->ComputeMean(corpus); !status.ok()) return status;
  if (absl::Status status = index->ComputeSignatures(corpus, threads, quiet); !status.ok()) return status;
  index->tables_.resize(static_cast<size_t>(complete.tables));
  for (int table = 0; table < complete.tables; ++table) index->FillTable(table);
  return index;
}

absl::Status HashIndex::ComputeMean(const DataSpec& corpus) {
  absl::StatusOr<std::unique_ptr<RowReader>> reader = OpenRows(corpus);
  if (!reader.ok()) return reader.status();
  const size_t d = shape_.dimension,
               blocks = std::min(kMeanBlocks, (shape_.rows + kBlockRows - 1) / kBlockRows);
  std::vector<std::byte> raw(kBlockRows * shape_.row_bytes());
  std::vector<float> rows(kBlockRows * d);
  std::vector<double> sum(d);
  size_t counted = 0;
  for (size_t block = 0; block < blocks; ++block) {
    const size_t first = shape_.rows * block / blocks;
    const size_t count = std::min(kBlockRows, shape_.rows * (block + 1) / blocks - first);
    if (absl::Status status = (*reader)->Read(first, count, raw.data()); !status.ok()) return status;
    ToFloats(raw.data(), count * d, shape_.element, rows.data());
    for (size_t row = 0; row < count; ++row) {
      for (size_t i = 0; i < d; ++i) sum[i] += rows[row * d + i];
    }
    counted += count;
  }
  mean_.resize(d);
  for (size_t i = 0; i < d; ++i) mean_[i] = static_cast<float>(sum[i] / static_cast<double>(counted));
  return absl::OkStatus();
}

absl::Status HashIndex::ComputeSignatures(const DataSpec& corpus, int threads, bool quiet) {
  signatures_.resize(shape_.rows * words());
  apps::Progress progress(absl::StrCat("indexing ", corpus.text), shape_.rows, quiet);
  const size_t d = shape_.dimension;
  auto compute = [&](size_t begin, size_t end) {
    absl::StatusOr<std::unique_ptr<RowReader>> reader = OpenRows(corpus);
    if (!reader.ok()) return reader.status();
    std::vector<std::byte> raw(kBlockRows * shape_.row_bytes());
    std::vector<float> rows(kBlockRows * d), margins(rotation_.outputs()), scratch = rotation_.MakeScratch();
    for (size_t first = begin; first < end; first += kBlockRows) {
      const size_t count = std::min(kBlockRows, end - first);
      if (absl::Status status = (*reader)->Read(first, count, raw.data()); !status.ok()) return status;
      ToFloats(raw.data(), count * d, shape_.element, rows.data());
      for (size_t row = 0; row < count; ++row) {
        rotation_.Apply(&rows[row * d], mean_.data(), scratch, margins.data());
        PackSigns(margins.data(), margins.size(), &signatures_[(first + row) * words()]);
      }
      progress.Add(count);
    }
    return absl::OkStatus();
  };
  return apps::ForRanges(0, shape_.rows, threads, compute);
}

uint32_t HashIndex::Key(const uint64_t* signature, int table) const {
  const size_t bit = static_cast<size_t>(table * options_.key_bits), word = bit / 64, shift = bit % 64;
  uint64_t key = signature[word] >> shift;
  if (shift + static_cast<size_t>(options_.key_bits) > 64) key |= signature[word + 1] << (64 - shift);
  return static_cast<uint32_t>(key & ((uint64_t{1} << options_.key_bits) - 1));
}

void HashIndex::FillTable(int table) {
  Table& t = tables_[static_cast<size_t>(table)];
  t.starts.assign((size_t{1} << options_.key_bits) + 1, 0);
  t.ids.resize(shape_.rows);
  for (size_t row = 0; row < shape_.rows; ++row) ++t.starts[Key(&signatures_[row * words()], table) + 1];
  for (size_t key = 1; key < t.starts.size(); ++key) t.starts[key] += t.starts[key - 1];
  std::vector<uint32_t> next(t.starts.begin(), t.starts.end() - 1);
  for (size_t row = 0; row < shape_.rows; ++row) {
    t.ids[next[Key(&signatures_[row * words()], table)]++] = static_cast<uint32_t>(row);
  }
}

std::vector<uint32_t> HashIndex::Lookup(std::span<const float> query, size_t k, LookupStats* stats) const {
  std::vector<float> scratch = rotation_.MakeScratch(), margins(rotation_.outputs());
  rotation_.Apply(query.data(), mean_.data(), scratch, margins.data());
  std::vector<uint64_t> signature(words());
  PackSigns(margins.data(), margins.size(), signature.data());
  const size_t want =
      std::min(shape_.rows, std::max(static_cast<size_t>(options_.candidates), kCandidatesPerK * k));
  return Nearest(Gather(margins.data(), signature.data(), want, stats), signature.data(), want);
}

std::vector<uint32_t> HashIndex::Gather(const float* margins, const uint64_t* signature, size_t want,
                                        LookupStats* stats) const {
  Probes probes(*this, margins, signature);
  std::vector<uint64_t> seen((shape_.rows + 63) / 64);
  std::vector<uint32_t> found(4096);
  size_t count = 0, buckets = 0;
  for (; (buckets < static_cast<size_t>(options_.probes) || count < want) && probes.Next(); ++buckets) {
    const Table& table = probes.table();
    const uint32_t key = probes.key(), begin = table.starts[key], end = table.starts[key + 1];
    if (count + (end - begin) > found.size()) found.resize(2 * (count + (end - begin)));
    for (uint32_t i = begin; i < end; ++i) {
      // Without a branch: whether an image was seen before is as good as random to the predictor.
      const uint32_t id = table.ids[i];
      uint64_t& word = seen[id / 64];
      found[count] = id;
      count += (~word >> (id % 64)) & 1;
      word |= uint64_t{1} << (id % 64);
    }
  }
  found.resize(count);
  if (stats != nullptr) *stats = {buckets, count};
  return found;
}

std::vector<uint32_t> HashIndex::Nearest(std::vector<uint32_t> found, const uint64_t* signature,
                                         size_t want) const {
  if (found.size() <= want) return found;
  std::vector<uint16_t> distances(found.size());
  HammingDistances(signatures_.data(), words(), signature, found, distances.data());
  std::vector<uint32_t> at(static_cast<size_t>(options_.signature_bits) + 1);
  for (const uint16_t d : distances) ++at[d];
  size_t radius = 0,
         below = 0;  // all nearer than `radius` are taken, and of those at it as many as are missing
  while (below + at[radius] <= want) below += at[radius++];
  size_t missing = want - below, kept = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool tie = distances[i] == radius && missing > 0;
    missing -= tie;
    found[kept] = found[i];
    kept += tie || distances[i] < radius;
  }
  found.resize(kept);
  return found;
}

size_t HashIndex::MemoryBytes() const {
  size_t bytes = signatures_.size() * sizeof(uint64_t) + mean_.size() * sizeof(float);
  for (const Table& t : tables_) bytes += (t.starts.size() + t.ids.size()) * sizeof(uint32_t);
  return bytes;
}

size_t HashIndex::EstimateBytes(size_t rows, const IndexOptions& options) {
  const int bits = options.key_bits == 0 ? AutomaticKeyBits(rows) : options.key_bits;
  const size_t table = (rows + (size_t{1} << bits) + 1) * sizeof(uint32_t);
  return rows * static_cast<size_t>(options.signature_bits) / 8 + static_cast<size_t>(options.tables) * table;
}

}  // namespace curtail::hdsearch
