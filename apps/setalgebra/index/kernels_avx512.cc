// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 with VP2INTERSECT and VBMI2: 16 numbers of each list a step. One instruction compares all pairs of
// 16 32-bit numbers, one packs what matched.
#include "apps/setalgebra/index/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define CURTAIL_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,avx512vp2intersect,avx2,popcnt")))

namespace curtail::setalgebra {
namespace avx512 {  // the same names for other instructions would be versions of one function
namespace {

CURTAIL_AVX512 inline __m256i Load(const uint16_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

CURTAIL_AVX512 size_t Gallop(const uint16_t* a, size_t n, const uint16_t* b, size_t m, uint16_t* out) {
  constexpr size_t kBlock = 32;
  const size_t blocks = m / kBlock;
  size_t found = 0, block = 0, i = 0;
  for (; i < n; ++i) {
    block = internal::FindBlock<kBlock>(b, block, blocks, a[i]);
    if (block == blocks) break;
    const __m512i y = _mm512_loadu_si512(b + block * kBlock);
    out[found] = a[i];
    found += _mm512_cmpeq_epi16_mask(y, _mm512_set1_epi16(static_cast<short>(a[i]))) != 0;
  }
  return found + internal::MergeScalar(a + i, n - i, b + blocks * kBlock, m - blocks * kBlock, out + found);
}

CURTAIL_AVX512 size_t Merge(const uint16_t* a, size_t n, const uint16_t* b, size_t m, uint16_t* out) {
  size_t i = 0, j = 0, found = 0;
  while (i + 16 <= n && j + 16 <= m) {
    const __m256i x = Load(a + i);
    __mmask16 of_x, of_y;
    _mm512_2intersect_epi32(_mm512_cvtepu16_epi32(x), _mm512_cvtepu16_epi32(Load(b + j)), &of_x, &of_y);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + found), _mm256_maskz_compress_epi16(of_x, x));
    found += static_cast<size_t>(_mm_popcnt_u32(of_x));
    const uint16_t last_x = a[i + 15], last_y = b[j + 15];
    i += last_x <= last_y ? 16 : 0;
    j += last_y <= last_x ? 16 : 0;
  }
  // One of them has less than a register left.
  a += i, n -= i, b += j, m -= j;
  return found + (n <= m ? Gallop(a, n, b, m, out + found) : Gallop(b, m, a, n, out + found));
}

constexpr Kernels kAvx512{"avx512", Merge, Gallop, 12};

}  // namespace
}  // namespace avx512

const Kernels* Avx512Kernels() {
  const bool runs = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2") &&
                    __builtin_cpu_supports("avx512vp2intersect");
  return runs ? &avx512::kAvx512 : nullptr;
}

}  // namespace curtail::setalgebra
#else
namespace curtail::setalgebra {
const Kernels* Avx512Kernels() { return nullptr; }
}  // namespace curtail::setalgebra
#endif
