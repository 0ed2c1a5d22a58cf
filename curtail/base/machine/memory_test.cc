// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/memory.h"

#include <gtest/gtest.h>

#include "curtail/base/internal/control_groups_testing.h"

namespace curtail {
namespace {

class MemoryLimitTest : public internal::ControlGroupsTest {};

TEST_F(MemoryLimitTest, IsTheLeastOfV2) {
  EXPECT_EQ(MemoryLimit(root()), kNoLimit);
  Groups("0::/pods/one");
  Mounts(kV2Mount);
  Write("/sys/fs/cgroup/pods/one/memory.max", "max");
  EXPECT_EQ(MemoryLimit(root()), kNoLimit);
  Write("/sys/fs/cgroup/pods/memory.max", "167772160");
  EXPECT_EQ(MemoryLimit(root()), 160 << 20);
  Write("/sys/fs/cgroup/pods/one/memory.max", "83886080");
  EXPECT_EQ(MemoryLimit(root()), 80 << 20);
}

TEST_F(MemoryLimitTest, IsThatOfV1) {
  Groups("4:memory:/docker/abc\n2:cpu:/docker/abc\n0::/");
  Mounts(
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(MemoryLimit(root()), kNoLimit);
  Write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "83886080");
  EXPECT_EQ(MemoryLimit(root()), 80 << 20);
}

TEST_F(MemoryLimitTest, TakesNoNonsenseForALimit) {
  Groups("0::/");
  Mounts(kV2Mount);
  for (const char* text : {"", "0", "-1", "nan", "inf", "x"}) {
    Write("/sys/fs/cgroup/memory.max", text);
    EXPECT_EQ(MemoryLimit(root()), kNoLimit) << text;
  }
}

}  // namespace
}  // namespace curtail
