// SPDX-License-Identifier: Apache-2.0
//
// rotation.h - projects a vector on seeded pseudo-random hyperplanes, in O(D log D).
//
// Three rounds of "flip random signs, then a Hadamard transform" behave like a random rotation (Andoni,
// Indyk, Laarhoven, Razenshteyn, Schmidt: Practical and Optimal LSH for Angular Distance, 2015); its
// coordinates are projections on orthogonal random directions. Against a dense matrix of hyperplanes this
// saves a megabyte of memory traffic a query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace curtail::hdsearch {

// A Rotation gives `outputs` projections of vectors of `dimension` values. Immutable: any thread.
class Rotation {
 public:
  Rotation(size_t dimension, size_t outputs, uint64_t seed);

  // Scratch space for Apply(), one a thread.
  std::vector<float> MakeScratch() const { return std::vector<float>(padded_ + kAlignFloats); }
  // Writes `outputs` projections of `x` (minus `mean`). REQUIRES: scratch from MakeScratch().
  void Apply(const float* x, const float* mean, std::vector<float>& scratch, float* out) const;

  size_t dimension() const { return dimension_; }
  size_t outputs() const { return outputs_; }

 private:
  static constexpr size_t kAlignFloats = 16;

  // Immutable after construction.
  const size_t dimension_;
  const size_t outputs_;
  const size_t padded_;       // the dimension, rounded up to a power of two
  std::vector<float> signs_;  // +-1/sqrt(padded_), three rounds for each block of padded_ outputs
};

}  // namespace curtail::hdsearch
