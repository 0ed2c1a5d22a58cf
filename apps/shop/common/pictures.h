// SPDX-License-Identifier: Apache-2.0
//
// pictures.h - pictures of clothing, from files as Fashion-MNIST has them, and as PNG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace curtail::shop {

// In the folder of the application: a file a picture, named by its number.
inline constexpr char kPicturesFolder[] = "pictures";
inline constexpr size_t kMostPictureBytes = 64 << 10;
inline constexpr uint32_t kPictureSide = 28;  // pixels
inline constexpr char kFashionFolder[] = "/usr/share/datasets/fashion-mnist";

// A piece of clothing.
struct Garment {
  uint8_t kind = 0;    // 0 to 9: KindOf()
  std::string pixels;  // kPictureSide rows, from 0 for black to 255 for white
};

// "shirt", "sneaker". REQUIRES: 0 to 9.
std::string_view KindOf(uint8_t kind);

// Returns the first `most` pictures of train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz in the folder. Errors: NOT_FOUND, which
// names the file; DATA_LOSS: a file is not whole, or of another form.
absl::StatusOr<std::vector<Garment>> ReadGarments(const std::string& folder, size_t most);

// Returns a PNG, dark on white. REQUIRES: `pixels` has side * side bytes.
std::string PngOf(std::string_view pixels, uint32_t side);

}  // namespace curtail::shop
