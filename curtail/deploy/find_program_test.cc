// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/find_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "curtail/deploy/deployment.h"
#include "curtail/deploy/tiers.h"

namespace curtail::deploy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CpusTest, ReadsSetsAndRefusesTheRest) {
  EXPECT_THAT(*ParseCpus("0"), ElementsAre(0));
  EXPECT_THAT(*ParseCpus("0-2,5"), ElementsAre(0, 1, 2, 5));
  for (const char* wrong : {"", "a", "1-", "-1", "2-1", "0,,1", "0-1-2", "99999"}) {
    EXPECT_FALSE(ParseCpus(wrong).ok()) << wrong;
  }
  EXPECT_THAT(std::string(ParseCpus("1023").status().message()),
              HasSubstr("cpus '1023': this machine has CPUs "));
}

TEST(FindProgramTest, LooksInThePathAndSaysWhatIsMissing) {
  EXPECT_TRUE(FindProgram("sh").ok());
  EXPECT_EQ(*FindProgram("./own"), "./own") << "a path is taken as it is";
  const std::string missing(FindProgram("no-such-program").status().message());
  EXPECT_THAT(missing, HasSubstr("no-such-program is missing: it is not in /"));
  EXPECT_THAT(missing, HasSubstr("libexec/curtail"));
}

TEST(FindProgramTest, LooksFirstWhereItIsTold) {
  const LogFolder dir;
  const std::string own = dir.path() + "/sh";
  std::ofstream(own) << "#!/bin/true\n";
  setenv("CURTAIL_PATH", ("/nowhere:" + dir.path()).c_str(), 1);
  EXPECT_NE(*FindProgram("sh"), own) << "it cannot be run";
  ASSERT_EQ(chmod(own.c_str(), 0700), 0);
  EXPECT_EQ(*FindProgram("sh"), own);
  EXPECT_THAT(FindProgram("no-such-program").status().message(), HasSubstr("CURTAIL_PATH or PATH"));
  unsetenv("CURTAIL_PATH");
  EXPECT_NE(*FindProgram("sh"), own);
}

}  // namespace
}  // namespace curtail::deploy
