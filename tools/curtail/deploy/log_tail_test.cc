// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/log_tail.h"

#include <filesystem>
#include <fstream>

#include "curtail/base/temp_dir_testing.h"
#include "curtail/deploy/internal/bounded_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LogTailTest : public testing::Test {
 protected:
  // As the process that writes the log.
  void Write(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  void Move() { deploy::BoundLog(path_, 0); }

  const TempDir dir_;
  const std::string path_ = dir_.File("leaf-0.log");
  LogTail tail_{path_};
};

TEST_F(LogTailTest, TakesWholeLinesOnce) {
  EXPECT_THAT(tail_.Take(0, false), IsEmpty()) << "there is no log";
  Write("a\nb\nc\nd");
  EXPECT_THAT(tail_.Take(2, false), ElementsAre("b", "c"));
  EXPECT_THAT(tail_.Take(0, false), IsEmpty());
  Write("e\n");
  EXPECT_THAT(tail_.Take(0, false), ElementsAre("de"));
  Write("f");
  EXPECT_THAT(tail_.Take(0, true), ElementsAre("f"));
}

TEST_F(LogTailTest, TakesTheRestOfALogThatWasMoved) {
  Write("first\n");
  EXPECT_THAT(tail_.Take(0, false), ElementsAre("first"));
  Write("second\nthi");
  Move();
  Write("rd\n");
  EXPECT_THAT(tail_.Take(0, false), ElementsAre("second", "third"));
  Write("fourth\n");
  EXPECT_THAT(tail_.Take(0, false), ElementsAre("fourth"));
  Write("fifth\nsixth\n");
  Move();
  EXPECT_THAT(tail_.Take(0, false), ElementsAre("fifth", "sixth"));
}

TEST_F(LogTailTest, TakesAllOfALogThatWasMovedLater) {
  Write("a line that was read\n");
  EXPECT_THAT(tail_.Take(0, false), ElementsAre("a line that was read"));
  Move();
  Write("new\n");
  Move();
  Write("newer\n");
  EXPECT_THAT(tail_.Take(0, false), ElementsAre("new", "newer"));
  std::filesystem::remove(path_ + ".1");
  std::filesystem::resize_file(path_, 0);
  Write("last\n");
  EXPECT_THAT(tail_.Take(0, false), ElementsAre("last"));
}

}  // namespace
}  // namespace curtail::tool
