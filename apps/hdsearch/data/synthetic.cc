// SPDX-License-Identifier: Apache-2.0
//
// Generated rows: value = centre of the row's cluster + a point of a shared subspace + noise. Centres and
// basis are drawn once a reader from the seed; what differs from row to row is drawn from (seed, row), so
// that a shard costs only its share and every process sees the same corpus.
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/hdsearch/data/data_spec.h"
#include "curtail/base/mix.h"

namespace curtail::hdsearch {
namespace {

constexpr float kSubspaceScale = 0.5f;  // spread within a cluster, against 1 between centres
constexpr float kNoiseScale = 0.1f;

// Value `i` of stream `stream`: the sum of four uniform 16-bit numbers, centred and scaled to variance 1;
// close enough to a normal distribution, and many times cheaper.
float Normalish(uint64_t stream, uint64_t i) {
  const uint64_t bits = Scramble(stream + i * kMixStep);
  const int32_t sum =
      static_cast<int32_t>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48)) -
      131070;
  return static_cast<float>(sum) * (1.7320508f / 65536.0f);
}

enum Stream : uint64_t { kCentres = 1, kBasis = 2, kRow = 3 };
uint64_t StreamOf(uint64_t seed, Stream kind, uint64_t index) {
  return Scramble(Scramble(seed * kMixStep + kind) + index * kMixStep);
}

class SyntheticReader final : public RowReader {
 public:
  explicit SyntheticReader(const DataSpec& spec)
      : RowReader(spec.text, {Element::kFloat32, spec.synthetic.rows, spec.synthetic.dimension}),
        options_(spec.synthetic),
        basis_(options_.rank * options_.dimension) {
    const float scale =
        options_.rank == 0 ? 0 : kSubspaceScale / std::sqrt(static_cast<float>(options_.rank));
    const uint64_t stream = StreamOf(options_.seed, kBasis, 0);
    for (size_t i = 0; i < basis_.size(); ++i) basis_[i] = scale * Normalish(stream, i);
  }

 private:
  absl::Status ReadRows(size_t first, size_t count, std::byte* out) override {
    std::vector<float> row(shape().dimension);
    for (size_t i = 0; i < count; ++i) {
      Generate(options_.first + first + i, row.data());
      std::memcpy(out + i * shape().row_bytes(), row.data(), shape().row_bytes());
    }
    return absl::OkStatus();
  }

  void Generate(uint64_t id, float* row) const {
    const size_t d = options_.dimension;
    const uint64_t stream = StreamOf(options_.seed, kRow, id);
    const uint64_t centre = StreamOf(options_.seed, kCentres, Scramble(stream) % options_.clusters);
    for (size_t j = 0; j < d; ++j) row[j] = Normalish(centre, j) + kNoiseScale * Normalish(stream, j);
    for (size_t r = 0; r < options_.rank; ++r) {
      const float weight = Normalish(stream, d + r);
      const float* axis = &basis_[r * d];
      for (size_t j = 0; j < d; ++j) row[j] += weight * axis[j];
    }
  }

  const SyntheticOptions options_;
  std::vector<float> basis_;  // rank x dimension
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowReader>> OpenSynthetic(const DataSpec& spec) {
  return std::make_unique<SyntheticReader>(spec);
}

}  // namespace curtail::hdsearch
