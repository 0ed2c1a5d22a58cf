// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/string_bytes.h"

#include <gtest/gtest.h>

namespace curtail {
namespace {

TEST(ResizeForOverwrite, KeepsWhatWasThereAndEndsWithAZero) {
  std::string bytes = "short";
  ResizeForOverwrite(bytes, 100'000);
  ASSERT_EQ(bytes.size(), 100'000u);
  EXPECT_EQ(bytes.substr(0, 5), "short");
  EXPECT_EQ(bytes.c_str()[100'000], '\0');
  std::fill(bytes.begin(), bytes.end(), 'x');
  EXPECT_EQ(bytes, std::string(100'000, 'x'));
  ResizeForOverwrite(bytes, 3);
  EXPECT_EQ(bytes, "xxx");
  ResizeForOverwrite(bytes, 3);
  EXPECT_EQ(bytes + "y", "xxxy");
}

}  // namespace
}  // namespace curtail
