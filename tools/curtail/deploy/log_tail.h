// SPDX-License-Identifier: Apache-2.0
//
// log_tail.h - reads what a process adds to its log, also where BoundLog() moves the log to NAME.log.1.
#pragma once

#include <cstddef>
#include <deque>
#include <istream>
#include <string>
#include <utility>

namespace curtail::tool {

// A LogTail is a log that is read from where it was left. Thread-compatible.
class LogTail {
 public:
  explicit LogTail(std::string path) : path_(std::move(path)) {}

  // The whole lines that have come since the last look, with `end` also one that was not finished. At most `last` of them
  // unless that is 0.
  std::deque<std::string> Take(size_t last, bool end);

 private:
  // Adds the rest of NAME.log.1 to `lines`.
  void TakeMoved(size_t last, std::deque<std::string>* lines);
  // Adds the lines of `in` from at_. A rest without the end of a line is one if `end`, and stays otherwise.
  void Read(std::istream& in, size_t last, bool end, std::deque<std::string>* lines);

  const std::string path_;
  std::streamoff at_ = 0;
  std::string begun_;  // the begin of a line in NAME.log.1, which goes on in the log
};

}  // namespace curtail::tool
