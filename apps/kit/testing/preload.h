// SPDX-License-Identifier: Apache-2.0
//
// preload.h - a full disk, a loss of power and a wall clock of a test's own, for the programs that it starts.
#pragma once

#include <string>
#include <vector>

#include "curtail/base/rng.h"

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
  // REQUIRES: never less than before.
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

// A Power knows what of the files of programs that Words() started has reached the disk: what they had at their last fsync() or
// fdatasync(). Thread-compatible.
class Power : public Preload {
 public:
  // Keeps that in the folder `disk`, which is there and has nothing else.
  explicit Power(std::string disk);
  // All that the files of a folder have is on the disk. REQUIRES: no program that Words() started is up.
  void Settle(const std::string& folder) const;
  // Leaves in the databases of a folder what is on the disk, and each block that was written since with the chance `kept`.
  // REQUIRES: Settle() came before the programs that have written, and all have ended. Settle() comes before the next.
  void Lose(const std::string& folder, double kept, Rng& rng) const;

 private:
  std::string OnDisk(const std::string& path) const;

  const std::string disk_;
};

// The wall clock of all programs that Words() started.
class SetClock : public Preload {
 public:
  SetClock();
  // Of the true time.
  void SetAhead(int seconds) const { Tell(&seconds, sizeof seconds); }
};

}  // namespace curtail::apps
