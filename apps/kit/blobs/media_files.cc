// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/blobs/media_files.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "apps/kit/digits.h"
#include "apps/kit/output_file.h"
#include "curtail/base/strings.h"

namespace curtail::apps {
namespace {

constexpr uint64_t kMostImageBytes = uint64_t{4} << 20, kMostVideoBytes = uint64_t{16} << 20;

// Its first box names what it is for (ISO/IEC 14496-12, 4.3). Still images and QuickTime have other brands.
bool IsMp4(std::string_view begin) {
  static constexpr std::array<std::string_view, 9> kBrands = {"isom", "iso2", "iso4", "iso5", "iso6",
                                                              "mp41", "mp42", "avc1", "M4V "};
  return begin.size() >= 16 && begin.substr(0, 2) == std::string_view("\0\0", 2) &&
         begin.substr(4, 4) == "ftyp" && std::ranges::find(kBrands, begin.substr(8, 4)) != kBrands.end();
}

// Its EBML header has the DocType "webm" (RFC 8794, 11.2.4).
bool IsWebm(std::string_view begin) {
  return begin.starts_with("\x1a\x45\xdf\xa3") &&
         begin.substr(0, 64).find("\x42\x82\x84webm") != std::string_view::npos;
}

std::string_view ImageTypeOf(std::string_view begin) {
  if (begin.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (begin.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (begin.starts_with("GIF87a") || begin.starts_with("GIF89a")) return "image/gif";
  if (begin.starts_with("RIFF") && begin.size() >= 12 && begin.substr(8, 4) == "WEBP") return "image/webp";
  return {};
}

absl::Status Failed(const std::string& path) {
  // The system's own codes have OUT_OF_RANGE and ABORTED among them, which tell an upload how to go on.
  return absl::InternalError(Join(path, ": ", std::strerror(errno)));
}

}  // namespace

MediaKind MediaKindOf(std::string_view begin) {
  if (IsMp4(begin)) return {"video/mp4", kMostVideoBytes};
  if (IsWebm(begin)) return {"video/webm", kMostVideoBytes};
  const std::string_view image = ImageTypeOf(begin);
  return {image, image.empty() ? 0 : kMostImageBytes};
}

absl::StatusOr<ByteRange> RangeOf(std::string_view header, uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  const ByteRange whole = {0, size, false};
  const size_t dash = header.find('-');
  if (!header.starts_with(kUnit) || dash == header.npos) return whole;
  const std::string_view before = header.substr(kUnit.size(), dash - kUnit.size());
  const std::string_view after = header.substr(dash + 1);
  const std::optional<uint64_t> first = ParseDigits(before), last = ParseDigits(after);
  if ((!first && !before.empty()) || (!last && !after.empty())) return whole;
  if (first ? last && last < first : !last) return whole;
  const uint64_t from = first ? *first : size - std::min(*last, size);  // alone, `last` counts from the end
  if (from >= size) return absl::OutOfRangeError(Join("the file has ", size, " bytes"));
  const uint64_t end = first && last ? std::min(*last, size - 1) : size - 1;
  return ByteRange{from, end - from + 1, true};
}

std::string MediaFiles::PathOf(uint64_t id) const { return Join(folder_, "/", id); }

absl::Status MediaFiles::Create(uint64_t id, std::string_view bytes) const {
  OutputFile file(PathOf(id));
  absl::Status status = file.Write(bytes);
  return status.ok() ? file.Commit() : status;
}

absl::StatusOr<uint64_t> MediaFiles::Append(uint64_t id, uint64_t from, std::string_view bytes,
                                            uint64_t whole) const {
  const std::string path = PathOf(id);
  const Reader file(std::fopen(path.c_str(), "r+be"));
  if (file == nullptr) return Failed(path);
  const int fd = fileno(file.get());
  // Two parts of one place would mix, and one could outlast the end of the upload.
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return absl::AbortedError("another part is being added");
  struct stat there = {};
  if (fstat(fd, &there) != 0) return Failed(path);
  const auto size = static_cast<uint64_t>(there.st_size);
  if (from > size) return absl::OutOfRangeError(Join("the next byte is that at ", size));
  const std::string_view more = bytes.substr(std::min<uint64_t>(size - from, bytes.size()));
  if (std::fseek(file.get(), 0, SEEK_END) != 0) return Failed(path);
  if (std::fwrite(more.data(), 1, more.size(), file.get()) != more.size()) return Failed(path);
  if (std::fflush(file.get()) != 0) return Failed(path);
  if (size + more.size() == whole && fdatasync(fd) != 0) return Failed(path);
  return size + more.size();
}

MediaFiles::Reader MediaFiles::Open(uint64_t id, uint64_t from) const {
  Reader file(std::fopen(PathOf(id).c_str(), "rbe"));
  if (file != nullptr && std::fseek(file.get(), static_cast<long>(from), SEEK_SET) != 0) file.reset();
  return file;
}

absl::Status MediaFiles::Remove(uint64_t id) const {
  const std::string path = PathOf(id);
  return unlink(path.c_str()) == 0 || errno == ENOENT ? absl::OkStatus() : Failed(path);
}

}  // namespace curtail::apps
