// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a program, keeps what its files had when it last asked for them to reach the disk (preload.h): a copy of each, in the
// folder whose name is in the open file of the number CURTAIL_POWER. The name of a copy is its file's path with ! for /.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::string Disk() {
  const char* const number = std::getenv("CURTAIL_POWER");
  char name[4096] = {};
  const bool told = number != nullptr && pread(std::atoi(number), name, sizeof name - 1, 0) > 0;
  return told ? name : "";
}

std::string PathOf(int fd) {
  char path[4096] = {};
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path - 1);
  return size > 0 ? path : "";
}

// False: there is no copy of all that the file has. It is not opened again: a close() would end SQLite's locks of it.
bool Copy(int from, const std::string& to, off_t size) {
  const int out = open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  off_t at = 0;
  while (out >= 0 && at < size && sendfile(out, from, &at, static_cast<size_t>(size - at)) > 0) {
  }
  if (out >= 0) close(out);
  return out >= 0 && at == size;
}

// The copy replaces the one of before at once, as the program may be killed at any time.
int Keep(int fd) {
  static const std::string disk = Disk();
  struct stat file = {};
  if (disk.empty() || fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return 0;
  if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) return 0;  // no database
  std::string name = PathOf(fd);
  std::ranges::replace(name, '/', '!');
  const std::string copy = disk + "/" + name, part = disk + "/part" + std::to_string(syscall(SYS_gettid));
  return Copy(fd, part, file.st_size) && std::rename(part.c_str(), copy.c_str()) == 0 ? 0 : -1;
}

}  // namespace

extern "C" {

int fsync(int fd) { return Keep(fd); }
int fdatasync(int fd) { return Keep(fd); }

}  // extern "C"
