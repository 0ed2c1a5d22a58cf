// SPDX-License-Identifier: Apache-2.0
//
// kernels.h - squared Euclidean distances, one implementation an instruction set, chosen when the process
// starts.
//
// Thread safety: all functions are pure. Rows need no alignment. Results of different kernels over floats
// differ in rounding only; over bytes they are equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace curtail::hdsearch {

// One strategy. `n` is the dimension, at most kMaxDimension, so that sums of byte differences fit 32 bits.
struct Kernels {
  const char* name;
  float (*floats)(const float* query, const float* row, size_t n);
  uint32_t (*bytes)(const uint8_t* query, const uint8_t* row, size_t n);
  float (*mixed)(const float* query, const uint8_t* row, size_t n);  // a query off the grid of a byte corpus
};

// The strategies this machine can run, slowest first; never empty.
std::vector<const Kernels*> AvailableKernels();
// The last of them.
const Kernels& BestKernels();

// The strategies, a file each; nullptr where the compiler's target or this CPU lacks the instructions.
const Kernels* ScalarKernels();
const Kernels* Avx2Kernels();
const Kernels* Avx512Kernels();
const Kernels* VnniKernels();

}  // namespace curtail::hdsearch
