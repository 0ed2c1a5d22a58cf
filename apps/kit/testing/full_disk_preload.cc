// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a store, has its files on a disk that may be full (preload.h). These are the
// calls by which Redis and PostgreSQL of Debian 12 write their data. The open file of the number
// CURTAIL_FULL_DISK begins with a 1 while the disk is full.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace {

constexpr off_t kBlock = 4096;

bool IsFull() {
  static const int disk = [] {
    const char* const number = std::getenv("CURTAIL_FULL_DISK");
    return number == nullptr ? -1 : std::atoi(number);
  }();
  char full = 0;
  return disk >= 0 && pread(disk, &full, 1, 0) == 1 && full == '1';
}

// How many of the bytes there is room for; `at` < 0: at the place of the descriptor.
size_t Room(int fd, off_t at, size_t bytes) {
  struct stat file = {};
  if (fd <= STDERR_FILENO || fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || !IsFull()) return bytes;
  if (at < 0) at = (fcntl(fd, F_GETFL) & O_APPEND) != 0 ? file.st_size : lseek(fd, 0, SEEK_CUR);
  const off_t end = (file.st_size + kBlock - 1) / kBlock * kBlock;
  return std::min(bytes, static_cast<size_t>(std::max<off_t>(0, end - at)));
}

ssize_t NoRoom() {
  errno = ENOSPC;
  return -1;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  const size_t room = Room(fd, -1, size);
  return room == 0 && size > 0 ? NoRoom() : syscall(SYS_write, fd, bytes, room);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  const size_t room = Room(fd, at, size);
  return room == 0 && size > 0 ? NoRoom() : syscall(SYS_pwrite64, fd, bytes, room, at);
}

// All or nothing.
ssize_t pwritev(int fd, const iovec* parts, int count, off_t at) {
  size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  return Room(fd, at, size) < size ? NoRoom() : syscall(SYS_pwritev, fd, parts, count, at, 0);
}

}  // extern "C"
