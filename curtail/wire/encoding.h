// SPDX-License-Identifier: Apache-2.0
//
// encoding.h - how gRPC compresses messages: the grpc-encoding of a call.
#pragma once

#include <cstdint>

namespace curtail::wire {

// kDeflate is zlib's format (RFC 1950), as HTTP calls it; kGzip RFC 1952.
enum class Encoding : uint8_t { kIdentity, kGzip, kDeflate };

}  // namespace curtail::wire
