// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/internal/bounded_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "curtail/base/read_file.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail::deploy {
namespace {

TEST(BoundLog, MovesALongLogBesideItselfWhileItsWriterGoesOn) {
  const TempDir dir;
  const std::string path = dir.File("leaf-0.log");
  std::ofstream writer(path, std::ios::app);
  writer << "first\n" << std::flush;
  BoundLog(path, 6);
  EXPECT_EQ(*ReadWholeFile(path, 100), "first\n") << "not more than 6 bytes";
  writer << "second\n" << std::flush;
  BoundLog(path, 6);
  EXPECT_EQ(*ReadWholeFile(path + ".1", 100), "first\nsecond\n");
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
  writer << "the third\n" << std::flush;
  EXPECT_EQ(*ReadWholeFile(path, 100), "the third\n");
  BoundLog(path, 6);
  EXPECT_EQ(*ReadWholeFile(path + ".1", 100), "the third\n") << "one old log stays";
  BoundLog(dir.File("absent.log"), 6);
  EXPECT_FALSE(std::filesystem::exists(dir.File("absent.log.1")));
}

}  // namespace
}  // namespace curtail::deploy
