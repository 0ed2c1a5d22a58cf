// SPDX-License-Identifier: Apache-2.0
//
// encoding.h - how gRPC compresses messages: the grpc-encoding of a call.
#pragma once

#include <cstdint>

namespace curtail::wire {

// kDeflate is zlib's format (RFC 1950), as HTTP calls it; kGzip RFC 1952; kZstd RFC 8878. The last
// needs a library built with CURTAIL_ZSTD: without, messages travel as they are.
enum class Encoding : uint8_t { kIdentity, kGzip, kDeflate, kZstd };

}  // namespace curtail::wire
