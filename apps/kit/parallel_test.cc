// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace curtail::apps {
namespace {

TEST(ForRanges, AnExceptionIsThePartsErrorAndTheOthersRun) {
  for (const size_t throwing : {0, 3}) {  // of the caller, of a helper
    std::atomic<size_t> ran = 0;
    const absl::Status status = ForRanges(0, 4, 4, [&](size_t begin, size_t end) -> absl::Status {
      if (begin == throwing) throw std::runtime_error("a library's");
      ran += end - begin;
      return absl::OkStatus();
    });
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_EQ(ran, 3u);
  }
}

}  // namespace
}  // namespace curtail::apps
