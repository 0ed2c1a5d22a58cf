// SPDX-License-Identifier: Apache-2.0
//
// AVX2 and FMA: 8 floats or 32 bytes a step.
#include "apps/hdsearch/index/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define CURTAIL_AVX2 __attribute__((target("avx2,fma")))

namespace curtail::hdsearch {
namespace avx2 {  // the same names for other instructions would be versions of one function
namespace {

CURTAIL_AVX2 inline float Sum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

CURTAIL_AVX2 inline __m256 Widen(const uint8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}

CURTAIL_AVX2 float Floats(const float* a, const float* b, size_t n) {
  __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256 d0 = _mm256_sub_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
    const __m256 d1 = _mm256_sub_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8));
    const __m256 d2 = _mm256_sub_ps(_mm256_loadu_ps(a + i + 16), _mm256_loadu_ps(b + i + 16));
    const __m256 d3 = _mm256_sub_ps(_mm256_loadu_ps(a + i + 24), _mm256_loadu_ps(b + i + 24));
    s0 = _mm256_fmadd_ps(d0, d0, s0), s1 = _mm256_fmadd_ps(d1, d1, s1);
    s2 = _mm256_fmadd_ps(d2, d2, s2), s3 = _mm256_fmadd_ps(d3, d3, s3);
  }
  float sum = Sum(_mm256_add_ps(_mm256_add_ps(s0, s1), _mm256_add_ps(s2, s3)));
  for (; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

CURTAIL_AVX2 uint32_t Bytes(const uint8_t* a, const uint8_t* b, size_t n) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i s0 = zero, s1 = zero;
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i));
    const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i));
    const __m256i d = _mm256_or_si256(_mm256_subs_epu8(x, y), _mm256_subs_epu8(y, x));  // |x - y|
    const __m256i low = _mm256_unpacklo_epi8(d, zero), high = _mm256_unpackhi_epi8(d, zero);
    s0 = _mm256_add_epi32(s0, _mm256_madd_epi16(low, low));
    s1 = _mm256_add_epi32(s1, _mm256_madd_epi16(high, high));
  }
  alignas(32) uint32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), _mm256_add_epi32(s0, s1));
  uint32_t sum = 0;
  for (const uint32_t lane : lanes) sum += lane;
  for (; i < n; ++i) sum += static_cast<uint32_t>((a[i] - b[i]) * (a[i] - b[i]));
  return sum;
}

CURTAIL_AVX2 float Mixed(const float* a, const uint8_t* b, size_t n) {
  __m256 s0 = _mm256_setzero_ps(), s1 = s0;
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256 d0 = _mm256_sub_ps(_mm256_loadu_ps(a + i), Widen(b + i));
    const __m256 d1 = _mm256_sub_ps(_mm256_loadu_ps(a + i + 8), Widen(b + i + 8));
    s0 = _mm256_fmadd_ps(d0, d0, s0), s1 = _mm256_fmadd_ps(d1, d1, s1);
  }
  float sum = Sum(_mm256_add_ps(s0, s1));
  for (; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

constexpr Kernels kAvx2{"avx2", Floats, Bytes, Mixed};

}  // namespace
}  // namespace avx2

const Kernels* Avx2Kernels() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &avx2::kAvx2 : nullptr;
}

}  // namespace curtail::hdsearch
#else
namespace curtail::hdsearch {
const Kernels* Avx2Kernels() { return nullptr; }
}  // namespace curtail::hdsearch
#endif
