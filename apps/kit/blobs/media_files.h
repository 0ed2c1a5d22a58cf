// SPDX-License-Identifier: Apache-2.0
//
// media_files.h - the bytes of images and videos: which type they have, and a folder with a file for each.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace curtail::apps {

struct MediaKind {
  std::string_view type;  // "image/png"; empty: neither an image nor a video that is known here
  uint64_t most_bytes = 0;
};

// By the first bytes of a file, whatever it is said to be: png, jpeg, gif, webp; mp4 and webm.
MediaKind MediaKindOf(std::string_view begin);

struct ByteRange {
  uint64_t from = 0, bytes = 0;
  bool part = false;  // false: the whole, as no range was asked for
};

// The bytes that HTTP's header Range names of a file of `size` bytes (RFC 9110, 14.1.2); the whole for any other header than
// one range of bytes. Errors: OUT_OF_RANGE: the file has none of them.
absl::StatusOr<ByteRange> RangeOf(std::string_view header, uint64_t size);

// A MediaFiles is a folder. All calls block. Thread-safe, and safe beside other processes. Errors: INTERNAL, with the path and
// what the system says, which is not for clients; of Create() those of OutputFile.
class MediaFiles {
 public:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using Reader = std::unique_ptr<std::FILE, Close>;

  explicit MediaFiles(std::string folder) : folder_(std::move(folder)) {}

  // A new file, which is on the disk when this returns.
  [[nodiscard]] absl::Status Create(uint64_t id, std::string_view bytes) const;
  // Adds those of `bytes`, which begin at `from`, that the file does not have. Nothing that it has is changed, so a part may
  // come twice, whole or not. Returns how many bytes it has then; when they are `whole`, all are on the disk. Errors:
  // OUT_OF_RANGE, if bytes before `from` are missing; ABORTED, if another part is being added.
  [[nodiscard]] absl::StatusOr<uint64_t> Append(uint64_t id, uint64_t from, std::string_view bytes,
                                                uint64_t whole) const;
  // Returns a reader at the byte `from`, or null if there is no such file.
  Reader Open(uint64_t id, uint64_t from = 0) const;
  // OK if there is none.
  [[nodiscard]] absl::Status Remove(uint64_t id) const;

 private:
  std::string PathOf(uint64_t id) const;

  const std::string folder_;
};

}  // namespace curtail::apps
