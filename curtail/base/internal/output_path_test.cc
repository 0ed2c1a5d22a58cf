// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/internal/output_path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "curtail/base/temp_dir_testing.h"

namespace curtail::internal {
namespace {

TEST(FollowLinks, EndsAtTheFileThatTheyLeadTo) {
  const TempDir dir;
  const std::string file = dir.File("7.json"), link = dir.File("latest.json"), far = dir.File("far.json");
  std::filesystem::create_symlink("7.json", link);
  std::filesystem::create_symlink(link, far);
  for (const bool exists : {false, true}) {
    if (exists) std::ofstream(file) << "{}";
    for (const std::string& path : {file, link, far}) {
      const OutputPath end = FollowLinks(path);
      EXPECT_EQ(std::filesystem::weakly_canonical(end.path), std::filesystem::weakly_canonical(file)) << path;
      EXPECT_FALSE(std::filesystem::is_symlink(end.path)) << path;
      EXPECT_EQ(end.fd, -1) << path;
    }
  }
  EXPECT_EQ(FollowLinks("name").path, "name");
  EXPECT_EQ(FollowLinks("/nonexistent/name").path, "/nonexistent/name");
  std::filesystem::create_symlink("circle", dir.File("circle"));
  EXPECT_EQ(FollowLinks(dir.File("circle")).path, dir.File("circle"));
}

TEST(FollowLinks, EndsAtAnOpenFile) {
  const TempDir dir;
  const int fd = open(dir.File("open").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(fd, 0);
  const std::string number = std::to_string(fd);
  std::filesystem::create_symlink("/proc/self/fd/" + number, dir.File("link"));
  for (const std::string& path : {"/dev/fd/" + number, "/proc/self/fd/" + number, dir.File("link")})
    EXPECT_EQ(FollowLinks(path).fd, fd) << path;
  EXPECT_EQ(FollowLinks("/dev/null").fd, -1);
  close(fd);
}

// Runs `check` while the standard output goes to `path`.
template <typename Check>
void WithStdoutTo(const std::string& path, Check check) {
  std::fflush(stdout);
  const int before = dup(STDOUT_FILENO), fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_TRUE(before >= 0 && fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0) << path;
  close(fd);
  check();
  dup2(before, STDOUT_FILENO);
  close(before);
}

TEST(IsStdout, ByAnyNameOfIt) {
  const TempDir dir;
  const std::string out = dir.File("out"), link = dir.File("link");
  std::filesystem::create_symlink("out", link);
  bool by_dash = false, by_device = false, by_name = false, by_link = false, other = true, null = true;
  WithStdoutTo(out, [&] {
    by_dash = IsStdout("-");
    by_device = IsStdout("/dev/stdout");
    by_name = IsStdout(out);
    by_link = IsStdout(link);
    other = IsStdout(dir.File("other"));
  });
  WithStdoutTo("/dev/null", [&] { null = IsStdout("/dev/null"); });
  EXPECT_TRUE(by_dash && by_device && by_name && by_link);
  EXPECT_FALSE(other);
  EXPECT_FALSE(null) << "several results may go there";
  EXPECT_FALSE(IsStdout(""));
}

}  // namespace
}  // namespace curtail::internal
