// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/index/kernels.h"

#include <utility>

namespace curtail::setalgebra {
namespace {

size_t GallopScalar(const uint16_t* a, size_t n, const uint16_t* b, size_t m, uint16_t* out) {
  size_t found = 0, at = 0;
  for (size_t i = 0; i < n && at < m; ++i) {
    at = internal::FindBlock<1>(b, at, m, a[i]);
    if (at < m && b[at] == a[i]) out[found++] = a[i];
  }
  return found;
}

constexpr Kernels kScalar{"scalar", internal::MergeScalar, GallopScalar, 6};

}  // namespace

// Without a branch that depends on the numbers but the loop's.
size_t internal::MergeScalar(const uint16_t* a, size_t n, const uint16_t* b, size_t m, uint16_t* out) {
  size_t i = 0, j = 0, found = 0;
  while (i < n && j < m) {
    const uint16_t x = a[i], y = b[j];
    out[found] = x;
    found += x == y;
    i += x <= y;
    j += y <= x;
  }
  return found;
}

size_t Intersect(const Kernels& kernels, const uint16_t* a, size_t n, const uint16_t* b, size_t m,
                 uint16_t* out) {
  if (n > m) std::swap(a, b), std::swap(n, m);
  return (n * kernels.skew <= m ? kernels.gallop : kernels.merge)(a, n, b, m, out);
}

const Kernels* ScalarKernels() { return &kScalar; }

std::vector<const Kernels*> AvailableKernels() {
  std::vector<const Kernels*> kernels;
  for (const Kernels* k : {ScalarKernels(), Avx2Kernels(), Avx512Kernels()}) {
    if (k != nullptr) kernels.push_back(k);
  }
  return kernels;
}

const Kernels& BestKernels() {
  static const Kernels* const best = AvailableKernels().back();
  return *best;
}

}  // namespace curtail::setalgebra
