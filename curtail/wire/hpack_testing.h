// SPDX-License-Identifier: Apache-2.0
//
// hpack_testing.h - nghttp2's HPACK behind the shape of ours, as the oracle of tests and fuzzing.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curtail/wire/internal/hpack.h"

namespace curtail::wire::internal {

using Fields = std::vector<std::pair<std::string, std::string>>;

// The outcome of decoding a block: the fields it heard (up to the error if there is one).
struct Decoded {
  bool ok = false;
  Fields fields;
  friend bool operator==(const Decoded&, const Decoded&) = default;
};

inline Decoded DecodeWith(HpackDecoder& decoder, std::string_view block) {
  Decoded decoded;
  decoded.ok = decoder.Decode(
      block, [&decoded](const HeaderField& field) { decoded.fields.emplace_back(field.name, field.value); });
  return decoded;
}

// A dynamic table size update (RFC 7541 6.3).
inline std::string SizeUpdate(uint32_t bytes) {
  if (bytes < 31) return std::string(1, static_cast<char>(0x20 | bytes));
  std::string block = "\x3f";
  for (bytes -= 31; bytes >= 0x80; bytes >>= 7) block.push_back(static_cast<char>(bytes | 0x80));
  block.push_back(static_cast<char>(bytes));
  return block;
}

// An OracleDecoder is nghttp2's inflater. Thread-compatible.
class OracleDecoder {
 public:
  explicit OracleDecoder(uint32_t max_table_bytes = kDefaultTableBytes) {
    if (nghttp2_hd_inflate_new(&inflater_) != 0) std::abort();
    SetMaxTableBytes(max_table_bytes);
  }
  ~OracleDecoder() { nghttp2_hd_inflate_del(inflater_); }
  OracleDecoder(const OracleDecoder&) = delete;
  OracleDecoder& operator=(const OracleDecoder&) = delete;

  void SetMaxTableBytes(uint32_t bytes) {
    if (nghttp2_hd_inflate_change_table_size(inflater_, bytes) != 0) std::abort();
  }
  size_t table_bytes() const { return nghttp2_hd_inflate_get_dynamic_table_size(inflater_); }
  size_t table_entries() const { return nghttp2_hd_inflate_get_num_table_entries(inflater_) - 61; }

  Decoded Decode(std::string_view block) {
    Decoded decoded;
    auto* next = reinterpret_cast<const uint8_t*>(block.data());
    size_t left = block.size();
    for (;;) {
      nghttp2_nv field;
      int flags = 0;
      const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, next, left, 1);
      if (used < 0) return decoded;
      next += used;
      left -= static_cast<size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
        decoded.fields.emplace_back(std::string(reinterpret_cast<char*>(field.name), field.namelen),
                                    std::string(reinterpret_cast<char*>(field.value), field.valuelen));
      }
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && left == 0) break;
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    decoded.ok = true;
    return decoded;
  }

 private:
  nghttp2_hd_inflater* inflater_ = nullptr;
};

// An OracleEncoder is nghttp2's deflater. Thread-compatible.
class OracleEncoder {
 public:
  explicit OracleEncoder(size_t max_table_bytes = kDefaultTableBytes) {
    if (nghttp2_hd_deflate_new(&deflater_, max_table_bytes) != 0) std::abort();
  }
  ~OracleEncoder() { nghttp2_hd_deflate_del(deflater_); }
  OracleEncoder(const OracleEncoder&) = delete;
  OracleEncoder& operator=(const OracleEncoder&) = delete;

  void SetPeerTableSize(size_t bytes) {
    if (nghttp2_hd_deflate_change_table_size(deflater_, bytes) != 0) std::abort();
  }

  // The fields whose bit is set in `never_index` stay out of the table.
  std::string Encode(const Fields& fields, uint64_t never_index = 0) {
    std::vector<nghttp2_nv> list;
    for (const auto& [name, value] : fields) {
      const bool plain = (never_index >> (list.size() % 64) & 1) != 0;
      list.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
                      reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
                      static_cast<uint8_t>(plain ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE)});
    }
    std::string block(nghttp2_hd_deflate_bound(deflater_, list.data(), list.size()), '\0');
    const ssize_t size = nghttp2_hd_deflate_hd(deflater_, reinterpret_cast<uint8_t*>(block.data()),
                                               block.size(), list.data(), list.size());
    if (size < 0) std::abort();
    block.resize(static_cast<size_t>(size));
    return block;
  }

 private:
  nghttp2_hd_deflater* deflater_ = nullptr;
};

}  // namespace curtail::wire::internal
