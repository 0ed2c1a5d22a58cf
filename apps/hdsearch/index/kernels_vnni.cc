// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 with VNNI, whose vpdpwssd multiplies pairs and accumulates in one instruction; floats as in plain
// AVX-512.
#include "apps/hdsearch/index/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define CURTAIL_VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))

namespace curtail::hdsearch {
namespace vnni {  // the same names for other instructions would be versions of one function
namespace {

CURTAIL_VNNI inline void Step(__m512i x, __m512i y, __m512i& low_sum, __m512i& high_sum) {
  const __m512i zero = _mm512_setzero_si512();
  const __m512i d = _mm512_or_si512(_mm512_subs_epu8(x, y), _mm512_subs_epu8(y, x));
  const __m512i low = _mm512_unpacklo_epi8(d, zero), high = _mm512_unpackhi_epi8(d, zero);
  low_sum = _mm512_dpwssd_epi32(low_sum, low, low);
  high_sum = _mm512_dpwssd_epi32(high_sum, high, high);
}

CURTAIL_VNNI uint32_t Bytes(const uint8_t* a, const uint8_t* b, size_t n) {
  __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 128 <= n; i += 128) {
    Step(_mm512_loadu_si512(a + i), _mm512_loadu_si512(b + i), s0, s1);
    Step(_mm512_loadu_si512(a + i + 64), _mm512_loadu_si512(b + i + 64), s2, s3);
  }
  for (; i < n; i += 64) {
    const __mmask64 mask = n - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (n - i)) - 1;
    Step(_mm512_maskz_loadu_epi8(mask, a + i), _mm512_maskz_loadu_epi8(mask, b + i), s0, s1);
  }
  s0 = _mm512_add_epi32(_mm512_add_epi32(s0, s1), _mm512_add_epi32(s2, s3));
  return static_cast<uint32_t>(_mm512_reduce_add_epi32(s0));
}

}  // namespace
}  // namespace vnni

const Kernels* VnniKernels() {
  const Kernels* base = Avx512Kernels();
  if (base == nullptr || !__builtin_cpu_supports("avx512vnni")) return nullptr;
  static const Kernels kernels{"avx512-vnni", base->floats, vnni::Bytes, base->mixed};
  return &kernels;
}

}  // namespace curtail::hdsearch
#else
namespace curtail::hdsearch {
const Kernels* VnniKernels() { return nullptr; }
}  // namespace curtail::hdsearch
#endif
