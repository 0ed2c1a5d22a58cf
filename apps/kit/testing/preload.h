// SPDX-License-Identifier: Apache-2.0
//
// preload.h - a full disk and a wall clock of a test's own, for the programs that it starts.
#pragma once

#include <string>
#include <vector>

namespace curtail::apps {

// A library that programs preload, and what the test tells it. The programs know both by open files, which they inherit:
// a PostgreSQL that root starts runs as a user that need not reach their paths. With a sanitizer, programs go without.
// Thread-safe.
class Preload {
 public:
  ~Preload();
  Preload(const Preload&) = delete;
  Preload& operator=(const Preload&) = delete;

  // Come before the words of a program.
  std::vector<std::string> Words() const;

 protected:
  // `variable` names the file for the library.
  Preload(const char* library, const char* variable);
  void Tell(const void* value, size_t bytes) const;

 private:
  const char* const variable_;
  const int library_, told_;
};

// While a FullDisk is full, no file of a program that Words() started grows beyond its last block:
// the write is short, or fails with ENOSPC. What a file has can be overwritten and read.
//
// RLIMIT_FSIZE is no such disk: it has another error, and refuses to overwrite, too.
class FullDisk : public Preload {
 public:
  FullDisk();
  void Fill() const { Tell("1", 1); }
  void Free() const { Tell("0", 1); }
};

// The wall clock of all programs that Words() started.
class SetClock : public Preload {
 public:
  SetClock();
  // Of the true time.
  void SetAhead(int seconds) const { Tell(&seconds, sizeof seconds); }
};

}  // namespace curtail::apps
