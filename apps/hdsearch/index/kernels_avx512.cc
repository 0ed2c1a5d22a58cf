// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 (F and BW): 16 floats or 64 bytes a step, the tail under a mask.
#include "apps/hdsearch/index/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define CURTAIL_AVX512 __attribute__((target("avx512f,avx512bw")))

namespace curtail::hdsearch {
namespace avx512 {  // the same names for other instructions would be versions of one function
namespace {

CURTAIL_AVX512 inline __m512 Accumulate(__m512 sum, __m512 x, __m512 y) {
  const __m512 d = _mm512_sub_ps(x, y);
  return _mm512_fmadd_ps(d, d, sum);
}

CURTAIL_AVX512 float Floats(const float* a, const float* b, size_t n) {
  __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    s0 = Accumulate(s0, _mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i));
    s1 = Accumulate(s1, _mm512_loadu_ps(a + i + 16), _mm512_loadu_ps(b + i + 16));
    s2 = Accumulate(s2, _mm512_loadu_ps(a + i + 32), _mm512_loadu_ps(b + i + 32));
    s3 = Accumulate(s3, _mm512_loadu_ps(a + i + 48), _mm512_loadu_ps(b + i + 48));
  }
  for (; i < n; i += 16) {
    const __mmask16 mask = n - i >= 16 ? 0xffff : static_cast<__mmask16>((1u << (n - i)) - 1);
    s0 = Accumulate(s0, _mm512_maskz_loadu_ps(mask, a + i), _mm512_maskz_loadu_ps(mask, b + i));
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3)));
}

CURTAIL_AVX512 inline __m512i AbsDiff(__m512i x, __m512i y) {
  return _mm512_or_si512(_mm512_subs_epu8(x, y), _mm512_subs_epu8(y, x));
}

CURTAIL_AVX512 uint32_t Bytes(const uint8_t* a, const uint8_t* b, size_t n) {
  const __m512i zero = _mm512_setzero_si512();
  __m512i s0 = zero, s1 = zero;
  for (size_t i = 0; i < n; i += 64) {
    const __mmask64 mask = n - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (n - i)) - 1;
    const __m512i d = AbsDiff(_mm512_maskz_loadu_epi8(mask, a + i), _mm512_maskz_loadu_epi8(mask, b + i));
    const __m512i low = _mm512_unpacklo_epi8(d, zero), high = _mm512_unpackhi_epi8(d, zero);
    s0 = _mm512_add_epi32(s0, _mm512_madd_epi16(low, low));
    s1 = _mm512_add_epi32(s1, _mm512_madd_epi16(high, high));
  }
  return static_cast<uint32_t>(_mm512_reduce_add_epi32(_mm512_add_epi32(s0, s1)));
}

CURTAIL_AVX512 inline __m512 Widen(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

CURTAIL_AVX512 float Mixed(const float* a, const uint8_t* b, size_t n) {
  __m512 s0 = _mm512_setzero_ps(), s1 = s0;
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    s0 = Accumulate(s0, _mm512_loadu_ps(a + i), Widen(b + i));
    s1 = Accumulate(s1, _mm512_loadu_ps(a + i + 16), Widen(b + i + 16));
  }
  float sum = _mm512_reduce_add_ps(_mm512_add_ps(s0, s1));
  for (; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

constexpr Kernels kAvx512{"avx512", Floats, Bytes, Mixed};

}  // namespace
}  // namespace avx512

const Kernels* Avx512Kernels() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") ? &avx512::kAvx512 : nullptr;
}

}  // namespace curtail::hdsearch
#else
namespace curtail::hdsearch {
const Kernels* Avx512Kernels() { return nullptr; }
}  // namespace curtail::hdsearch
#endif
