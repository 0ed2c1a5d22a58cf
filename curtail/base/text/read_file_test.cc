// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/read_file.h"

#include <gtest/gtest.h>

namespace curtail {
namespace {

TEST(ReadWholeFile, ReadsUpToItsLimit) {
  EXPECT_EQ(ReadWholeFile("/nonexistent", 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(*ReadWholeFile("/dev/null", 10), "");
  EXPECT_EQ(ReadWholeFile("/dev/null/file", 10).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadWholeFile("/dev/zero", 10).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace curtail
