// SPDX-License-Identifier: Apache-2.0
//
// SSE4.2 and AVX2: 8 numbers of each list a step. One string instruction compares all pairs (Schlegel,
// Willhalm and Lehner, "Fast sorted-set intersection using SIMD instructions", ADMS 2011), a table of
// shuffles packs what matched. Lookups find a block of 16 by its last number and compare it at once (Lemire,
// Boytsov and Kurz, "SIMD compression and the intersection of sorted integers", 2016).
#include "apps/setalgebra/index/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#define CURTAIL_AVX2 __attribute__((target("avx2,sse4.2,popcnt")))

namespace curtail::setalgebra {
namespace avx2 {  // the same names for other instructions would be versions of one function
namespace {

// Row m brings the 16-bit lanes whose bits are set in m to the front.
constexpr auto kPack = [] {
  std::array<std::array<uint8_t, 16>, 256> rows = {};
  for (unsigned mask = 0; mask < 256; ++mask) {
    unsigned to = 0;
    for (unsigned lane = 0; lane < 8; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      rows[mask][to++] = static_cast<uint8_t>(2 * lane);
      rows[mask][to++] = static_cast<uint8_t>(2 * lane + 1);
    }
    for (; to < 16; ++to) rows[mask][to] = 0xff;
  }
  return rows;
}();

CURTAIL_AVX2 inline __m128i Load(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

CURTAIL_AVX2 size_t Gallop(const uint16_t* a, size_t n, const uint16_t* b, size_t m, uint16_t* out) {
  constexpr size_t kBlock = 16;
  const size_t blocks = m / kBlock;
  size_t found = 0, block = 0, i = 0;
  for (; i < n; ++i) {
    block = internal::FindBlock<kBlock>(b, block, blocks, a[i]);
    if (block == blocks) break;
    const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + block * kBlock));
    const __m256i equal = _mm256_cmpeq_epi16(y, _mm256_set1_epi16(static_cast<short>(a[i])));
    out[found] = a[i];
    found += _mm256_testz_si256(equal, equal) == 0;
  }
  return found + internal::MergeScalar(a + i, n - i, b + blocks * kBlock, m - blocks * kBlock, out + found);
}

CURTAIL_AVX2 size_t Merge(const uint16_t* a, size_t n, const uint16_t* b, size_t m, uint16_t* out) {
  size_t i = 0, j = 0, found = 0;
  while (i + 8 <= n && j + 8 <= m) {
    const __m128i x = Load(a + i), y = Load(b + j);
    constexpr int kMode = _SIDD_UWORD_OPS | _SIDD_CMP_EQUAL_ANY | _SIDD_BIT_MASK;
    const unsigned mask = static_cast<unsigned>(_mm_cvtsi128_si32(_mm_cmpestrm(y, 8, x, 8, kMode)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + found), _mm_shuffle_epi8(x, Load(&kPack[mask])));
    found += static_cast<size_t>(_mm_popcnt_u32(mask));
    const uint16_t last_x = a[i + 7], last_y = b[j + 7];
    i += last_x <= last_y ? 8 : 0;
    j += last_y <= last_x ? 8 : 0;
  }
  // One of them has less than a register left.
  a += i, n -= i, b += j, m -= j;
  return found + (n <= m ? Gallop(a, n, b, m, out + found) : Gallop(b, m, a, n, out + found));
}

constexpr Kernels kAvx2{"avx2", Merge, Gallop, 6};

}  // namespace
}  // namespace avx2

const Kernels* Avx2Kernels() {
  const bool runs = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("sse4.2");
  return runs ? &avx2::kAvx2 : nullptr;
}

}  // namespace curtail::setalgebra
#else
namespace curtail::setalgebra {
const Kernels* Avx2Kernels() { return nullptr; }
}  // namespace curtail::setalgebra
#endif
