// SPDX-License-Identifier: Apache-2.0
//
// huffman.h - decoding of the Huffman code of HPACK (RFC 7541 5.2 and appendix B).
//
// There is no encoder: see hpack_encoder.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace curtail::wire::internal {

// Room for what `coded_bytes` bytes can stand for: no code has less than five bits. One byte is slack.
constexpr size_t HuffmanDecodedBound(size_t coded_bytes) { return coded_bytes * 8 / 5 + 1; }

// Decodes `coded` into `out`, which has room for HuffmanDecodedBound(coded.size()) bytes and does not overlap it.
// Returns the number of bytes written. Nothing: `coded` holds the end-of-string symbol, or is padded by more
// than seven bits or by anything but ones.
std::optional<size_t> HuffmanDecode(std::string_view coded, char* out);

}  // namespace curtail::wire::internal
