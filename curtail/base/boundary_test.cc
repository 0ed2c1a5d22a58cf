// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/boundary.h"

#include <stdexcept>

#include "gtest/gtest.h"

namespace curtail {
namespace {

TEST(Boundary, ExceptionsEndThereAndCount) {
  const uint64_t before = ContainedExceptions();
  EXPECT_TRUE(Contain("test", [] {}));
  EXPECT_EQ(ContainedExceptions(), before);
  EXPECT_FALSE(Contain("test", [] { throw std::length_error("too long"); }));
  EXPECT_FALSE(Contain("test", [] { throw 7; }));
  EXPECT_EQ(ContainedExceptions(), before + 2);
}

}  // namespace
}  // namespace curtail
