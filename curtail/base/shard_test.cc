// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/shard.h"

#include <gtest/gtest.h>

namespace curtail {
namespace {

TEST(Shard, IsParsedStrictly) {
  EXPECT_EQ(*Shard::Parse("3/4"), (Shard{3, 4}));
  EXPECT_EQ(Shard::Parse("3/4")->ToString(), "3/4");
  EXPECT_TRUE(Shard::Parse("1023/1024").ok());
  for (const char* bad : {"", "4/4", "1", "/4", "1/", "a/b", "-1/4", " 1/4", "1/4x", "0/4/1", "0/0", "0/1025",
                          "0/99999999999"}) {
    EXPECT_EQ(Shard::Parse(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(Shard::Parse("a").status().message(),
            "shard \"a\": write INDEX/COUNT, as in 0/4, with INDEX below COUNT and COUNT at most 1024");
}

TEST(Shard, PartsAreRunsThatCoverAll) {
  for (const uint64_t entries : {uint64_t{5}, uint64_t{7}, uint64_t{117659}, uint64_t{1} << 32}) {
    uint64_t next = 0;
    for (uint32_t i = 0; i < 5; ++i) {
      const Shard shard{i, 5};
      EXPECT_EQ(shard.Begin(entries), next);
      EXPECT_GT(shard.End(entries), next);
      next = shard.End(entries);
    }
    EXPECT_EQ(next, entries);
  }
}

}  // namespace
}  // namespace curtail
