// SPDX-License-Identifier: Apache-2.0
//
// line_reader.h - reads a text file line by line, whether it is plain, gzip or bzip2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace curtail::apps {

// A LineReader gives the lines of one file in order. Thread-compatible.
class LineReader {
 public:
  // A longer line is an error, so that a binary file cannot eat the memory.
  static constexpr size_t kMaxLine = size_t{16} << 20;

  // Looks at the first bytes, not at the name, to know how it is compressed. Several gzip or bzip2 streams after each
  // other are one text. Errors: NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT (a folder).
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<LineReader>> Open(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next line without its end ("\n" or "\r\n"), valid until the next call; false at the end of the file. Errors:
  // DATA_LOSS (corrupt or truncated compression, with the offset), RESOURCE_EXHAUSTED (line too long, with its number).
  [[nodiscard]] absl::StatusOr<bool> Next(std::string_view* line);

  // Of the line that Next() gave last, from 1.
  uint64_t line_number() const;
  // "PATH, line N", for errors.
  std::string Where() const;
  // Bytes of the file read so far, of all: for progress.
  uint64_t offset() const;
  uint64_t size() const;

 private:
  struct Impl;
  explicit LineReader(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace curtail::apps
