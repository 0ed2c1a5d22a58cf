// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/cpus.h"

#include <gtest/gtest.h>

#include "curtail/base/internal/control_groups_testing.h"

namespace curtail {
namespace {

class CpuQuotaTest : public internal::ControlGroupsTest {
 protected:
  double Quota() const { return CpuQuota(root()); }
};

constexpr char kV1Mounts[] =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw shared:10 - cgroup cgroup rw,cpuset\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

TEST_F(CpuQuotaTest, IsInfiniteWithoutControlGroups) {
  EXPECT_EQ(Quota(), kNoLimit);
  Groups("0::/user.slice");
  Mounts("22 1 8:1 / / rw - ext4 /dev/sda1 rw\nno line of a mount");
  EXPECT_EQ(Quota(), kNoLimit);
}

TEST_F(CpuQuotaTest, IsThatOfItsGroupOfV2) {
  Groups("0::/pods/one");
  Mounts(kV2Mount);
  Write("/sys/fs/cgroup/pods/one/cpu.max", "50000 100000");
  EXPECT_DOUBLE_EQ(Quota(), 0.5);
  Write("/sys/fs/cgroup/pods/one/cpu.max", "max 100000");
  EXPECT_EQ(Quota(), kNoLimit);
}

TEST_F(CpuQuotaTest, IsTheLeastOfTheGroupsAbove) {
  Groups("0::/pods/one/container");
  Mounts(kV2Mount);
  Write("/sys/fs/cgroup/pods/one/container/cpu.max", "400000 100000");
  Write("/sys/fs/cgroup/pods/one/cpu.max", "150000 100000");
  Write("/sys/fs/cgroup/pods/cpu.max", "max 100000");
  Write("/sys/fs/cgroup/pods/other/cpu.max", "10000 100000");
  EXPECT_DOUBLE_EQ(Quota(), 1.5);
}

TEST_F(CpuQuotaTest, IsThatOfItsGroupOfV1BesideAnEmptyV2) {
  Groups("3:cpuset:/\n2:cpu,cpuacct:/docker/abc\n0::/");
  Mounts(kV1Mounts);
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000");
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(Quota(), 2.5);
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(Quota(), kNoLimit);
}

// A container of v1: the file names the group as the host does, the mount shows that group as its top.
TEST_F(CpuQuotaTest, IsThatOfTheTopThatAContainerSees) {
  Groups("2:cpu:/kubepods/pod7/abc");
  Mounts("32 31 0:29 /kubepods/pod7/abc /sys/fs/cgroup/cpu ro - cgroup cgroup ro,cpu");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000");
  EXPECT_DOUBLE_EQ(Quota(), 2);
}

// A process that was moved out of the part that its mount shows.
TEST_F(CpuQuotaTest, LooksNoHigherThanTheMount) {
  Groups("0::/../../other");
  Mounts(kV2Mount);
  Write("/sys/fs/cgroup/cpu.max", "300000 100000");
  Write("/sys/other/cpu.max", "10000 100000");
  EXPECT_DOUBLE_EQ(Quota(), 3);
}

TEST_F(CpuQuotaTest, TakesNoNonsenseForALimit) {
  Groups("0::/");
  Mounts(kV2Mount);
  for (const char* text :
       {"", "50000", "50000 0", "-5 100000", "0 100000", "nan 100000", "inf 100000", "x y"}) {
    Write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(Quota(), kNoLimit) << text;
  }
}

TEST(UsableCpus, IsOneAtLeastAndNoMoreThanItsTime) {
  EXPECT_GE(UsableCpus(), 1);
  EXPECT_GT(UsableCpuTime(), 0);
  EXPECT_LE(UsableCpus(), std::max(1.0, UsableCpuTime()));
}

}  // namespace
}  // namespace curtail
