// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/testing/preload.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "curtail/base/strings.h"

#ifndef CLOCK_LIBRARY  // in a build with a sanitizer
#define CLOCK_LIBRARY nullptr
#define FULL_DISK_LIBRARY nullptr
#define POWER_LIBRARY nullptr
#endif

namespace curtail::apps {
namespace {

// Of a file; nothing if it is not there.
std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Preload::Preload(const char* library, const char* variable)
    : variable_(variable),
      library_(library == nullptr ? -1 : open(library, O_RDONLY)),
      told_(memfd_create("told", 0)) {
  EXPECT_TRUE(library == nullptr || library_ >= 0) << library;
}

Preload::~Preload() {
  close(library_);
  close(told_);
}

std::vector<std::string> Preload::Words() const {
  if (library_ < 0) return {};
  return {"env", Join("LD_PRELOAD=/proc/self/fd/", library_), Join(variable_, "=", told_)};
}

void Preload::Tell(const void* value, size_t bytes) const {
  EXPECT_EQ(pwrite(told_, value, bytes, 0), static_cast<ssize_t>(bytes));
}

FullDisk::FullDisk() : Preload(FULL_DISK_LIBRARY, "CURTAIL_FULL_DISK") {}

Power::Power(std::string disk) : Preload(POWER_LIBRARY, "CURTAIL_POWER"), disk_(std::move(disk)) {
  Tell(disk_.c_str(), disk_.size() + 1);
}

// As power_preload.cc has it.
std::string Power::OnDisk(const std::string& path) const {
  std::string name = path;
  std::ranges::replace(name, '/', '!');
  return Join(disk_, "/", name);
}

void Power::Settle(const std::string& folder) const {
  for (const auto& copy : std::filesystem::directory_iterator(disk_)) std::filesystem::remove(copy);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) std::filesystem::copy_file(entry.path(), OnDisk(entry.path()));
  }
}

void Power::Lose(const std::string& folder, double kept, Rng& rng) const {
  constexpr size_t kBlock = 4096;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path();
    if (path.ends_with("-shm")) std::filesystem::remove(path);  // it is memory
    if (!path.ends_with(".db") && !path.ends_with(".db-wal")) continue;
    const std::string now = Contents(path);
    std::string left = Contents(OnDisk(path));
    if (now.size() < left.size() && rng.Uniform01() < kept) left.resize(now.size());
    for (size_t at = 0; at < now.size(); at += kBlock) {
      const std::string block = now.substr(at, kBlock);
      if (left.compare(std::min(at, left.size()), kBlock, block) == 0 || rng.Uniform01() >= kept) continue;
      left.resize(std::max(left.size(), at + block.size()));
      left.replace(at, block.size(), block);
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << left;
  }
}

SetClock::SetClock() : Preload(CLOCK_LIBRARY, "CURTAIL_CLOCK") { SetAhead(0); }

}  // namespace curtail::apps
