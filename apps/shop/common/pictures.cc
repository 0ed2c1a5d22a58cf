// SPDX-License-Identifier: Apache-2.0
#include "apps/shop/common/pictures.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::shop {
namespace {

constexpr std::array<std::string_view, 10> kKindsOfClothing = {
    "t-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"};
constexpr uint32_t kImages = 0x803, kLabels = 0x801;  // unsigned bytes of three dimensions, of one

struct CloseFile {
  void operator()(gzFile_s* file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseFile>;

std::string BigEndian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

// Reads `count` bytes. DATA_LOSS: the file has fewer.
absl::StatusOr<std::string> ReadBytes(const GzFile& file, const std::string& path, size_t count) {
  std::string bytes(count, '\0');
  const int got = gzread(file.get(), bytes.data(), static_cast<unsigned>(count));
  if (got == static_cast<int>(count)) return bytes;
  return absl::DataLossError(Join(path, " is not whole"));
}

absl::StatusOr<uint32_t> ReadNumber(const GzFile& file, const std::string& path) {
  const absl::StatusOr<std::string> bytes = ReadBytes(file, path, sizeof(uint32_t));
  if (!bytes.ok()) return bytes.status();
  uint32_t number = 0;
  for (const char byte : *bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

// Opens an idx file of `magic`, whose elements have `shape`, and sets `*count` to how many it has.
absl::StatusOr<GzFile> OpenIdx(const std::string& path, uint32_t magic, const std::vector<uint32_t>& shape,
                               uint32_t* count) {
  GzFile file(gzopen(path.c_str(), "rbe"));
  if (file == nullptr)
    return absl::NotFoundError(Join(path, " cannot be opened: install the package dataset-fashion-mnist"));
  std::vector<uint32_t> wanted = {magic, 0};
  wanted.insert(wanted.end(), shape.begin(), shape.end());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const absl::StatusOr<uint32_t> number = ReadNumber(file, path);
    if (!number.ok()) return number.status();
    if (i == 1) *count = *number;
    else if (*number != wanted[i]) return absl::DataLossError(Join(path, " is not a file of clothing"));
  }
  return file;
}

std::string Chunk(std::string_view type, std::string_view data) {
  const std::string body = Join(type, data);
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return Join(BigEndian(static_cast<uint32_t>(data.size())), body, BigEndian(static_cast<uint32_t>(sum)));
}

}  // namespace

std::string_view KindOf(uint8_t kind) { return kKindsOfClothing[kind]; }

absl::StatusOr<std::vector<Garment>> ReadGarments(const std::string& folder, size_t most) {
  const std::string images = folder + "/train-images-idx3-ubyte.gz";
  const std::string labels = folder + "/train-labels-idx1-ubyte.gz";
  uint32_t pictures = 0, kinds = 0;
  const auto pixels = OpenIdx(images, kImages, {kPictureSide, kPictureSide}, &pictures);
  if (!pixels.ok()) return pixels.status();
  const auto numbers = OpenIdx(labels, kLabels, {}, &kinds);
  if (!numbers.ok()) return numbers.status();
  if (pictures != kinds) return absl::DataLossError(Join(labels, " has other pictures than ", images));
  std::vector<Garment> garments(std::min<size_t>(most, pictures));
  for (Garment& one : garments) {
    auto kind = ReadBytes(*numbers, labels, 1),
         picture = ReadBytes(*pixels, images, kPictureSide * kPictureSide);
    if (!kind.ok()) return kind.status();
    if (!picture.ok()) return picture.status();
    one.kind = static_cast<uint8_t>(kind->front());
    if (one.kind >= kKindsOfClothing.size()) return absl::DataLossError(Join(labels, " has a kind above 9"));
    one.pixels = *std::move(picture);
  }
  return garments;
}

std::string PngOf(std::string_view pixels, uint32_t side) {
  std::string rows;
  for (uint32_t row = 0; row < side; ++row) {
    rows += '\0';  // no filter
    for (const char pixel : pixels.substr(size_t{row} * side, side))
      rows += static_cast<char>(255 - static_cast<unsigned char>(pixel));
  }
  std::string packed(compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
           rows.size());
  packed.resize(size);
  constexpr std::string_view kGrey("\x08\0\0\0\0", 5);  // 8 bits a pixel, without colour and interlace
  return Join("\x89PNG\r\n\x1a\n", Chunk("IHDR", Join(BigEndian(side), BigEndian(side), kGrey)),
              Chunk("IDAT", packed), Chunk("IEND", ""));
}

}  // namespace curtail::shop
