// SPDX-License-Identifier: Apache-2.0
//
// compression.h - messages compressed and back, by zlib or zstd.
//
// Stateless; any thread. Memory beside the result (zlib: 260 KiB to compress, 40 KiB to inflate; zstd: up to 1 MiB and
// 8 MiB) is given back at once, so that idle connections hold none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "curtail/wire/encoding.h"

namespace curtail::wire::internal {

// The grpc-encoding and grpc-accept-encoding of this library.
#ifdef CURTAIL_ZSTD
inline constexpr std::string_view kAcceptedEncodings = "identity,deflate,gzip,zstd";
#else
inline constexpr std::string_view kAcceptedEncodings = "identity,deflate,gzip";
#endif
std::string_view EncodingName(Encoding encoding);
// Nothing for a name that is not supported.
std::optional<Encoding> EncodingOf(std::string_view name);

// Compresses `message` into `out`, which is overwritten. False if that takes as many bytes or more, or memory is short.
// REQUIRES: not kIdentity.
bool Compress(Encoding encoding, std::string_view message, std::string* out);

enum class Inflated {
  kOk,
  kTooLong,    // more than the limit; no more was inflated than that
  kMalformed,  // or cut short, or followed by other bytes
};
// Inflates `bytes` into `out`, which is overwritten; never to more than `limit` bytes. REQUIRES: not kIdentity.
Inflated Inflate(Encoding encoding, std::string_view bytes, size_t limit, std::string* out);

}  // namespace curtail::wire::internal
