// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/blobs/media_files.h"

#include <gtest/gtest.h>

namespace curtail::apps {
namespace {

TEST(MediaFiles, ARangeIsThatOfTheHeaderWithinTheFile) {
  const auto expect = [](const char* header, uint64_t from, uint64_t bytes) {
    const auto range = RangeOf(header, 10);
    ASSERT_TRUE(range.ok()) << header << ": " << range.status();
    EXPECT_TRUE(range->part) << header;
    EXPECT_EQ(range->from, from) << header;
    EXPECT_EQ(range->bytes, bytes) << header;
  };
  expect("bytes=0-9", 0, 10);
  expect("bytes=9-9", 9, 1);
  expect("bytes=3-", 3, 7);
  expect("bytes=3-18446744073709551615", 3, 7);
  expect("bytes=-4", 6, 4);
  expect("bytes=-11", 0, 10);
  for (const char* header :
       {"", "bytes", "bytes=", "bytes=-", "bytes=4-3", "bytes=0-1,3-4", "bytes=+1-2", "bytes= 1-2",
        "bytes=--1", "bytes=1-2x", "items=1-2", "bytes=18446744073709551616-"}) {
    const auto range = RangeOf(header, 10);
    ASSERT_TRUE(range.ok()) << header << ": " << range.status();
    EXPECT_FALSE(range->part) << header;
    EXPECT_EQ(range->bytes, 10u) << header;
  }
  for (const char* header : {"bytes=10-", "bytes=10-12", "bytes=-0"})
    EXPECT_TRUE(absl::IsOutOfRange(RangeOf(header, 10).status())) << header;
}

}  // namespace
}  // namespace curtail::apps
