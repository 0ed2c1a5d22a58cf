// SPDX-License-Identifier: Apache-2.0
//
// zstd_compression.h - messages compressed by zstd (RFC 8878) and back; only with CURTAIL_ZSTD.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "curtail/wire/internal/compression.h"

namespace curtail::wire::internal {

// As Compress() and MakeInflater() in compression.h.
bool CompressZstd(std::string_view message, std::string* out);
std::unique_ptr<Inflater> MakeZstdInflater(std::string_view bytes, size_t limit, std::string* out);

}  // namespace curtail::wire::internal
