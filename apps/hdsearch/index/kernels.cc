// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/index/kernels.h"

namespace curtail::hdsearch {
namespace {

template <class Query, class Row, class Sum>
Sum SquaredDistance(const Query* query, const Row* row, size_t n) {
  Sum sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto d =
        static_cast<std::conditional_t<std::is_same_v<Sum, float>, float, int32_t>>(query[i]) - row[i];
    sum += static_cast<Sum>(d * d);
  }
  return sum;
}

constexpr Kernels kScalar{"scalar", SquaredDistance<float, float, float>,
                          SquaredDistance<uint8_t, uint8_t, uint32_t>,
                          SquaredDistance<float, uint8_t, float>};

}  // namespace

const Kernels* ScalarKernels() { return &kScalar; }

std::vector<const Kernels*> AvailableKernels() {
  std::vector<const Kernels*> kernels;
  for (const Kernels* k : {ScalarKernels(), Avx2Kernels(), Avx512Kernels(), VnniKernels()}) {
    if (k != nullptr) kernels.push_back(k);
  }
  return kernels;
}

const Kernels& BestKernels() {
  static const Kernels* const best = AvailableKernels().back();
  return *best;
}

}  // namespace curtail::hdsearch
