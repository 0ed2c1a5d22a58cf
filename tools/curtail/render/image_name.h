// SPDX-License-Identifier: Apache-2.0
//
// image_name.h - names of container images.
#pragma once

#include <string_view>

namespace curtail::tool {

// True for [REGISTRY[:PORT]/]NAME[:TAG][@DIGEST] whose NAME has a-z, 0-9, '.', '_', '-' and '/'. Thread-safe.
bool IsImageName(std::string_view text);

}  // namespace curtail::tool
