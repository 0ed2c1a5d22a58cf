// SPDX-License-Identifier: Apache-2.0
#include "bench/common/variant.h"

#include <gtest/gtest.h>

namespace curtail::bench {
namespace {

TEST(Variant, ReadsAndPrintsItsName) {
  for (const char* name : {"SDB1-16", "SDB1-16+strict", "FIB1+on", "ADB1-4-4+dry-run",
                           "SDB1-16+strict+queue64+codel+lifo+priorities+credits+deadline", "std-SDB1-64",
                           "curtail-SDB1-64", "curtail-FIB2", "curtail-FDB1-1+queue64"}) {
    const absl::StatusOr<Variant> variant = Variant::Parse(name);
    ASSERT_TRUE(variant.ok()) << variant.status();
    EXPECT_EQ(variant->name(), name);
  }
}

TEST(Variant, RefusesUnknownGuardsAndWhatCannotRun) {
  for (const char* name : {"", "XYZ", "SDB1-16+", "SDB1-16+off", "SDB1-16+fast", "SDB1-16+queue",
                           "SDB1-16+queue0", "std-", "std-FIB1", "std-AIB1-1", "curtail-ADB1-1-1"}) {
    EXPECT_EQ(Variant::Parse(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST(Variant, IsOneOfAListOfItsKind) {
  EXPECT_EQ(ParseVariants("SDB1-16,FIB1+strict", false)->size(), 2u);
  EXPECT_EQ(ParseVariants("std-SDB1-64,curtail-FIB1", true)->size(), 2u);
  for (const bool calls_async : {false, true}) {
    EXPECT_FALSE(ParseVariants("", calls_async).ok());
    EXPECT_FALSE(ParseVariants("SDB1-64,std-SDB1-64", calls_async).ok());
    EXPECT_FALSE(ParseVariants(calls_async ? "std-SDB1-64," : "SDB1-64,", calls_async).ok());
  }
}

TEST(Variant, BecomesOptionsOfTheServer) {
  const ServerOptions options = Variant::Parse("SDB1-16+on+queue64+codel")->Options();
  EXPECT_EQ(options.config.ToString(), "SDB1-16");
  EXPECT_EQ(options.fence.mode, FenceMode::kOn);
  EXPECT_EQ(options.max_queue, 64u);
  EXPECT_EQ(options.queue.shed, ShedMode::kCodel);
  EXPECT_EQ(options.queue.mode, QueueMode::kFifo);
  EXPECT_TRUE(Variant::Parse("FIB1")->holds_no_thread());
  EXPECT_FALSE(Variant::Parse("SDB1-16")->holds_no_thread());
}

TEST(Variant, HasAParkedThreadForEachCallOnThreadsOnly) {
  EXPECT_EQ(Variant::Parse("std-SDB1-8")->Options(4).max_threads, 9);
  EXPECT_EQ(Variant::Parse("curtail-SDB1-8")->Options(4).max_threads, 9 + 4 * 8);
  EXPECT_EQ(Variant::Parse("curtail-SIB2")->Options(4).max_threads, 2 + 4 * 2);
  EXPECT_EQ(Variant::Parse("curtail-FDB1-2")->Options(4).max_threads, 3);
}

}  // namespace
}  // namespace curtail::bench
