// SPDX-License-Identifier: Apache-2.0
//
// zstd_compression.h - messages compressed by zstd (RFC 8878) and back; only with CURTAIL_ZSTD.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "curtail/wire/internal/compression.h"

namespace curtail::wire::internal {

// As Compress() and Inflate() in compression.h.
bool CompressZstd(std::string_view message, std::string* out);
Inflated InflateZstd(std::string_view bytes, size_t limit, std::string* out);

}  // namespace curtail::wire::internal
