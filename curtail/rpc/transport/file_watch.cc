// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/transport/file_watch.h"

#include <sys/stat.h>

#include <utility>

namespace curtail::internal {

FileWatch::FileWatch(std::vector<std::string> files, Nanos interval)
    : files_(std::move(files)), interval_(interval) {
  std::erase(files_, "");
}

std::vector<FileWatch::Stamp> FileWatch::Look() const {
  std::vector<Stamp> stamps;
  for (const std::string& file : files_) {
    struct stat info;
    Stamp& stamp = stamps.emplace_back();
    if (stat(file.c_str(), &info) != 0) continue;
    stamp = {.modified_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec,
             .inode = info.st_ino,
             .size = info.st_size};
  }
  return stamps;
}

void FileWatch::Postpone(TimePoint now) {
  if (interval_ > Nanos::zero() && !files_.empty()) next_look_ = now + interval_;
}

void FileWatch::BeforeReading() {
  seen_ = Look();
  Postpone(Now());
}

bool FileWatch::Changed(TimePoint now) {
  if (now < next_look_) return false;
  Postpone(now);
  return Look() != seen_;
}

}  // namespace curtail::internal
