// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/index/kernels.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "apps/hdsearch/index/rotation.h"
#include "apps/hdsearch/index/top_k.h"

namespace curtail::hdsearch {
namespace {

constexpr uint32_t kSeed = 20240611;

// Every kernel equals the scalar one, at every length up to several vectors and at every misalignment: a tail
// that is skipped or read too far shows here (under AddressSanitizer too, as the arrays end where the rows
// end).
TEST(Kernels, AllEqualScalarOverRandomLengths) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 rng(kSeed);
  const Kernels& scalar = *ScalarKernels();
  for (const Kernels* k : AvailableKernels()) {
    SCOPED_TRACE(k->name);
    for (int round = 0; round < 600; ++round) {
      const size_t n = round < 300 ? static_cast<size_t>(round) : rng() % 3000, shift = rng() % 8;
      std::vector<uint8_t> qb(n + shift), rb(n + shift);
      for (uint8_t& b : qb) b = static_cast<uint8_t>(rng());
      for (uint8_t& b : rb) b = static_cast<uint8_t>(rng());
      std::vector<float> qf(n + shift), rf(n + shift);
      std::normal_distribution<float> normal;
      for (float& f : qf) f = normal(rng);
      for (float& f : rf) f = normal(rng);
      ASSERT_EQ(k->bytes(&qb[0] + shift, &rb[0] + shift, n), scalar.bytes(&qb[0] + shift, &rb[0] + shift, n))
          << n;
      const float floats = scalar.floats(&qf[0] + shift, &rf[0] + shift, n);
      ASSERT_NEAR(k->floats(&qf[0] + shift, &rf[0] + shift, n), floats, 1e-5f * floats) << n;
      const float mixed = scalar.mixed(&qf[0] + shift, &rb[0] + shift, n);
      ASSERT_NEAR(k->mixed(&qf[0] + shift, &rb[0] + shift, n), mixed, 1e-5f * mixed) << n;
    }
  }
}

TEST(Kernels, BytesDoNotOverflowAtTheGreatestDistance) {
  const std::vector<uint8_t> zeros(65536, 0), full(65536, 255);
  for (const Kernels* k : AvailableKernels()) {
    EXPECT_EQ(k->bytes(zeros.data(), full.data(), 65536), 65536u * 65025u) << k->name;
  }
}

TEST(TopK, KeepsTheNearestInOrderWithTiesById) {
  TopK best(3);
  for (const Neighbor n : {Neighbor{5, 1}, {1, 9}, {2, 7}, {2, 3}, {2, 5}, {9, 0}}) best.Add(n);
  EXPECT_EQ(best.TakeSorted(), (std::vector<Neighbor>{{1, 9}, {2, 3}, {2, 5}}));
  TopK none(0);
  none.Add({1, 1});
  EXPECT_TRUE(none.TakeSorted().empty());
}

// A rotation keeps lengths and inner products; of that the angle between two vectors follows, which sign bits
// measure.
TEST(Rotation, KeepsInnerProductsWhenAllOutputsAreTaken) {
  std::mt19937 rng(kSeed);
  std::normal_distribution<float> normal;
  for (const size_t d : {1, 16, 100, 784, 2048}) {
    const size_t padded = std::max<size_t>(16, std::bit_ceil(d));
    const Rotation rotation(d, padded, 3);
    std::vector<float> x(d), y(d), zero(d), rx(padded), ry(padded), scratch = rotation.MakeScratch();
    for (float& f : x) f = normal(rng);
    for (float& f : y) f = normal(rng);
    rotation.Apply(x.data(), zero.data(), scratch, rx.data());
    rotation.Apply(y.data(), zero.data(), scratch, ry.data());
    double before = 0, after = 0, length = 0;
    for (size_t i = 0; i < d; ++i) before += x[i] * y[i], length += x[i] * x[i] + y[i] * y[i];
    for (size_t i = 0; i < padded; ++i) after += rx[i] * ry[i];
    EXPECT_NEAR(before, after, 1e-4 * length) << d;
  }
}

// More outputs than dimensions come from further, different rotations.
TEST(Rotation, GivesMoreOutputsThanDimensions) {
  const Rotation rotation(3, 64, 1);
  const std::vector<float> x = {1, 2, 3}, zero(3);
  std::vector<float> out(64), scratch = rotation.MakeScratch();
  rotation.Apply(x.data(), zero.data(), scratch, out.data());
  EXPECT_NE(std::vector<float>(out.begin(), out.begin() + 16),
            std::vector<float>(out.begin() + 16, out.begin() + 32));
}

}  // namespace
}  // namespace curtail::hdsearch
