// SPDX-License-Identifier: Apache-2.0
//
// kernels.h - what two sorted lists of 16-bit numbers have in common, one implementation an instruction set,
// chosen when the process starts.
//
// Thread safety: all functions are pure. Lists need no alignment; no number is twice in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace curtail::setalgebra {

// One strategy. Both functions write rising numbers to `out` and return how many. `out` has room for kSlack
// more than the shorter list is long, and overlaps no list. Neither reads outside of its lists.
struct Kernels {
  // Elements that may be written behind the result.
  static constexpr size_t kSlack = 32;

  const char* name;
  // For lists of about one length: merges.
  size_t (*merge)(const uint16_t* a, size_t n, const uint16_t* b, size_t m, uint16_t* out);
  // For a list that is much shorter than the other: looks each of its numbers up. REQUIRES: n <= m.
  size_t (*gallop)(const uint16_t* a, size_t n, const uint16_t* b, size_t m, uint16_t* out);
  // How many times longer than the other a list is at which gallop() becomes the faster one; measured.
  size_t skew;
};

// The elements that a and b have in common, by the better of the two functions.
size_t Intersect(const Kernels& kernels, const uint16_t* a, size_t n, const uint16_t* b, size_t m,
                 uint16_t* out);

// The strategies this machine can run, slowest first; never empty.
std::vector<const Kernels*> AvailableKernels();
// The last of them.
const Kernels& BestKernels();

// The strategies, a file each; nullptr where the compiler's target or this CPU lacks the instructions.
const Kernels* ScalarKernels();
const Kernels* Avx2Kernels();
const Kernels* Avx512Kernels();

namespace internal {

// The scalar merge, for the ends of lists that do not fill a register.
size_t MergeScalar(const uint16_t* a, size_t n, const uint16_t* b, size_t m, uint16_t* out);

// For 16-bit lists cut into blocks: the first block from `block` on whose last number is at least x, `blocks`
// when there is none. Looks 1, 2, 4, ... blocks ahead, then halves.
template <size_t kBlock>
size_t FindBlock(const uint16_t* b, size_t block, size_t blocks, uint16_t x) {
  if (block == blocks || b[block * kBlock + kBlock - 1] >= x) return block;
  size_t below = block, step = 1;  // the last of block `below` is less than x
  while (below + step < blocks && b[(below + step) * kBlock + kBlock - 1] < x) below += step, step *= 2;
  size_t end = below + step < blocks ? below + step : blocks;
  for (size_t begin = below + 1; begin < end;) {
    const size_t middle = begin + (end - begin) / 2;
    if (b[middle * kBlock + kBlock - 1] < x) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return end;
}

}  // namespace internal
}  // namespace curtail::setalgebra
