// SPDX-License-Identifier: Apache-2.0
//
// file_watch.h - tells when files are to be read again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "curtail/base/clock.h"

namespace curtail::internal {

// A FileWatch remembers how files looked when they were read. Thread-compatible.
class FileWatch {
 public:
  // `interval`: from one look at the files to the next; zero: it never looks. Empty names count for nothing.
  FileWatch(std::vector<std::string> files, Nanos interval);

  // Right before each attempt to read the files.
  void BeforeReading();
  // True if the interval has passed and a file has changed since that.
  bool Changed(TimePoint now);
  // When Changed() will look again; never without an interval.
  TimePoint next_look() const { return next_look_; }
  const std::string& first() const { return files_.front(); }

 private:
  // The identity of a file; zeros: it could not be looked at.
  struct Stamp {
    int64_t modified_ns = 0;
    uint64_t inode = 0;
    int64_t size = 0;
    bool operator==(const Stamp&) const = default;
  };
  std::vector<Stamp> Look() const;
  void Postpone(TimePoint now);

  std::vector<std::string> files_;
  Nanos interval_;
  std::vector<Stamp> seen_;  // before the last attempt to read them
  TimePoint next_look_ = TimePoint::max();
};

}  // namespace curtail::internal
