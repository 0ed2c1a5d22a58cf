// SPDX-License-Identifier: Apache-2.0
//
// control_groups_testing.h - a made tree of files, as /proc and the control groups have them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace curtail::internal {

class ControlGroupsTest : public testing::Test {
 protected:
  ControlGroupsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "curtail-groups-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~ControlGroupsTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  void Groups(const std::string& text) { Write("/proc/self/cgroup", text); }
  void Mounts(const std::string& text) { Write("/proc/self/mountinfo", text); }
  const std::string& root() const { return root_; }

  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  static constexpr char kV2Mount[] =
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";

 private:
  std::string root_;
};

}  // namespace curtail::internal
