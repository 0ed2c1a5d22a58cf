// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"

namespace {

std::vector<std::string> synced_names;  // of the files of the folder that was brought to the disk last

}  // namespace

// In place of the system's: no disk is needed here.
extern "C" int fsync(int fd) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink(curtail::Join("/proc/self/fd/", fd), error);
  if (!std::filesystem::is_directory(path, error)) return 0;
  synced_names.clear();
  for (const auto& entry : std::filesystem::directory_iterator(path))
    synced_names.push_back(entry.path().filename());
  return 0;
}

namespace curtail::apps {
namespace {

using testing::HasSubstr;

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t FilesIn(const TempDir& dir) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(dir.File("")), {}));
}

TEST(OutputFile, TakesItsNameWhenItIsComplete) {
  const TempDir dir;
  const std::string path = dir.Write("out", "old");
  OutputFile file(path);
  ASSERT_TRUE(file.Write("ne").ok());
  ASSERT_TRUE(file.Write("w").ok());
  EXPECT_EQ(Content(path), "old");
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_EQ(Content(path), "new");
  EXPECT_EQ(FilesIn(dir), 1u);
}

TEST(OutputFile, ItsNameIsOnTheDiskWhenItReturns) {
  const TempDir dir;
  OutputFile file(dir.File("out"));
  ASSERT_TRUE(file.Write("new").ok());
  synced_names.clear();
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_THAT(synced_names, testing::Contains("out"));
}

TEST(OutputFile, LeavesWhatWasThereIfItIsGivenUp) {
  const TempDir dir;
  const std::string path = dir.Write("out", "old");
  {
    EXPECT_TRUE(OutputFile(path).Write("new").ok());
  }
  EXPECT_EQ(Content(path), "old");
  EXPECT_EQ(FilesIn(dir), 1u);
}

TEST(OutputFile, NamesThePathAndTheReason) {
  const TempDir dir;
  OutputFile nowhere(dir.File("none/out"));
  for (const absl::Status& status : {nowhere.Write("x"), nowhere.Commit()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("none/out: cannot be written: No such file"));
  }
}

TEST(OutputFile, AFullDiskLeavesNothing) {
  OutputFile full("/dev/full");
  absl::Status status = full.Write("x");  // buffered; the device answers when it is flushed
  if (status.ok()) status = full.Commit();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("/dev/full: cannot be written: No space left"));
  EXPECT_TRUE(std::filesystem::exists("/dev/full"));
}

TEST(OutputFile, WritesToADeviceAsItIs) {
  OutputFile null("/dev/null");
  EXPECT_TRUE(null.Write("x").ok());
  EXPECT_TRUE(null.Commit().ok());
  EXPECT_FALSE(std::filesystem::is_regular_file("/dev/null"));
}

}  // namespace
}  // namespace curtail::apps
